// The terminal: two outputs, an input, and whether it is interactive. Results go to the standard output; notes, warnings
// and errors go to the standard error, so that pipes contain results only.

import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { type Environment, variable } from '../config/environment.ts'

export interface Terminal {
  /** Whether output may be coloured. */
  readonly color: boolean
  /** Whether a person can answer questions. */
  readonly isInteractive: boolean
  /** Whether progress is worth showing. */
  readonly isWatched: boolean
  /** Rewrites the last line with the progress, on a terminal only; empty = removes it. */
  showProgress(text: string): void
  print(text: string): void
  complain(text: string): void
  /** From now on Ctrl-C ends the program with this text, instead of silently. */
  complainWhenStopped(text: string): void
  /** The whole standard input. */
  readInput(): Promise<string>
  /** The answer; empty if there was none. */
  ask(question: string): Promise<string>
  /** The same, without showing what is typed. */
  askSecret(question: string): Promise<string>
}

export function allowsColor(env: Environment): boolean {
  return variable(env, 'NO_COLOR') === undefined && variable(env, 'TERM') !== 'dumb'
}

export function processTerminal(env: Environment): Terminal {
  const { stdin, stdout, stderr } = process
  // The reader has closed the pipe (`| head`): not a failure, and nothing is left to do.
  stdout.on('error', (error: Error & { readonly code?: string }) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  return {
    color: allowsColor(env) && stdout.isTTY === true,
    isInteractive: stdin.isTTY === true && stderr.isTTY === true,
    isWatched: stderr.isTTY === true,
    showProgress: (text) => void (stderr.isTTY && stderr.write(`\r\u001b[K${text}`)),
    print: (text) => void stdout.write(text),
    complain: (text) => void stderr.write(text),
    complainWhenStopped: (text) =>
      void process.once('SIGINT', () => stderr.write(text, () => process.exit(stoppedExit))),
    readInput: () => Bun.stdin.text(),
    ask: (question) => askLine(question, 'shown'),
    askSecret: (question) => askLine(question, 'hidden'),
  }
}

/** As shells report a program that SIGINT ended. */
const stoppedExit = 130

const pasteMs = 100

async function askLine(question: string, typed: 'shown' | 'hidden'): Promise<string> {
  const { stdin, stderr } = process
  // readline echoes what is typed into its output, so hidden input gets an output that drops everything.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output: typed === 'shown' ? stderr : nowhere, terminal: true })
  // Before the question is shown: the terminal itself would echo what is typed ahead.
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
