// The terminal as commands see it: two outputs, an input, and whether a person is there to be asked. Answers go to the
// standard output; everything that is said about them goes to the other one, so that pipes carry answers alone.

import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'

export interface Terminal {
  /** Whether what is printed may be coloured. */
  readonly color: boolean
  /** Whether questions reach a person. */
  readonly isInteractive: boolean
  /** Whether someone watches, so that progress is worth showing. */
  readonly isWatched: boolean
  print(text: string): void
  complain(text: string): void
  /** Everything that is piped in. */
  readInput(): Promise<string>
  /** The answer; empty when there was none. */
  ask(question: string): Promise<string>
  /** The same, without showing what is typed. */
  askSecret(question: string): Promise<string>
}

export function processTerminal(allowsColor: boolean): Terminal {
  const { stdin, stdout, stderr } = process
  // Whoever reads has read enough (`| head`): that is no failure of ours, and there is nothing left to do.
  stdout.on('error', (error: Error & { readonly code?: string }) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  return {
    color: allowsColor && stdout.isTTY === true,
    isInteractive: stdin.isTTY === true && stderr.isTTY === true,
    isWatched: stderr.isTTY === true,
    print: (text) => void stdout.write(text),
    complain: (text) => void stderr.write(text),
    readInput: () => Bun.stdin.text(),
    ask: (question) => askLine(question, 'shown'),
    askSecret: (question) => askLine(question, 'hidden'),
  }
}

const pasteMs = 100

async function askLine(question: string, typed: 'shown' | 'hidden'): Promise<string> {
  const { stdin, stderr } = process
  // readline echoes into its output; one that swallows everything leaves nothing on the screen.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output: typed === 'shown' ? stderr : nowhere, terminal: true })
  // Before the question is there to be answered: what is typed ahead would be echoed by the terminal itself.
  if (typed === 'hidden') {
    stdin.setRawMode(true)
    stderr.write(question)
  }
  try {
    return await new Promise<string>((resolve) => {
      // Ctrl-C and Ctrl-D close it without an answer.
      lines.once('close', () => resolve(''))
      lines.once('SIGINT', () => lines.close())
      void lines.question(typed === 'shown' ? question : '').then(resolve, () => resolve(''))
    })
  } finally {
    // The rest of a paste of several lines would go to the shell, which shows and remembers it.
    if (typed === 'hidden') await Bun.sleep(pasteMs)
    lines.close()
    if (typed === 'hidden') {
      stdin.setRawMode(false)
      stderr.write('\n')
    }
  }
}
