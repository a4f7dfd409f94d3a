// The tutorials for new users, docs/five-minutes.md and docs/first-hour.md: every command runs in a shell, in the order of the
// pages, in a new folder, and prints what the page shows. Only the installation, the provider's server and the port are replaced.

import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayCommand } from './parts/program.ts'
import { startUpstream } from './parts/upstream.ts'
import { answerHello } from './parts/upstream-words.ts'

const root = join(import.meta.dir, '..')
const pages = ['five-minutes.md', 'first-hour.md'].map((name) => readFileSync(join(root, 'docs', name), 'utf8'))
const provider = 'https://api.acme.example/v1'
const gatewayUrl = 'http://127.0.0.1:8080'

interface Step {
  readonly command: string
  /** As the page shows it; empty = anything. */
  readonly output: string
}

/** A line with `$ ` begins a command, and the text of a here-document belongs to it. */
function stepsOf(markdown: string): readonly Step[] {
  const steps: { command: string; output: string }[] = []
  for (const [, block = ''] of markdown.matchAll(/^```console\n(.*?)^```$/gms)) {
    let end: string | undefined
    for (const line of block.trimEnd().split('\n')) {
      const last = steps.at(-1)
      if (line.startsWith('$ ')) steps.push({ command: line.slice(2), output: '' })
      else if (end !== undefined && last) last.command += `\n${line}`
      else if (last) last.output += `${line}\n`
      if (line === end) end = undefined
      else end ??= /<<'(\w+)'$/.exec(line)?.[1]
    }
  }
  return steps
}

/** `…` stands for any text, also of several lines if it has a line to itself. */
function patternOf(output: string): RegExp {
  return new RegExp(
    `^${RegExp.escape(output.trimEnd())
      .replace(/(^|\\n|\n)…(?=\\n|\n|$)/g, '$1[^]*?')
      .replaceAll('…', '[^\\n]*')}$`,
  )
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-first-hour-'))
const upstream = startUpstream(answerHello)
const children: Bun.Subprocess[] = []
afterAll(async () => {
  await upstream.stop()
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** What a clone has: `npx tollgate`, and npm, which has nothing to install here. */
function makeCommands(): string {
  const bin = mkdtempSync(join(folder, 'bin-'))
  const program = gatewayCommand().map((part) => `'${part}'`)
  const commands = { npx: `[ "$1" = tollgate ] && shift && exec ${program.join(' ')} "$@"`, npm: `[ "$1" = ci ]` }
  for (const [name, text] of Object.entries(commands)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

async function readUntil(stream: ReadableStream<Uint8Array>, isEnough: (text: string) => boolean): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of stream) {
    text += decoder.decode(piece, { stream: true })
    if (isEnough(text)) break
  }
  return text
}

async function hasModel(url: string, id: string): Promise<boolean> {
  const { data } = (await (await fetch(`${url}/api/catalog`)).json()) as {
    readonly data: readonly { readonly id: string }[]
  }
  return data.some((model) => model.id === id)
}

test('every command of the tutorials prints what their pages show', async () => {
  const env = {
    ...{ PATH: `${makeCommands()}:${process.env.PATH}`, HOME: folder, TOLLGATE_LOG: 'pretty' },
    BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
  }
  const start = Bun.spawn([...gatewayCommand(), '--port', '0'], {
    ...{ cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] },
  })
  children.push(start)
  const started = await readUntil(start.stdout, (text) => /^listening on \S+\n/m.test(text))
  const url = /^listening on (\S+)$/m.exec(started)?.[1] ?? ''
  const shell = Bun.spawn(['sh'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] })
  children.push(shell)
  const lines = shell.stdout[Symbol.asyncIterator]()
  const decoder = new TextDecoder()
  /** Both streams, as a terminal shows them. */
  const type = async (command: string): Promise<string> => {
    shell.stdin.write(`exec 2>&1\n${command}\nprintf '\\nstatus %s end\\n' $?\n`)
    shell.stdin.flush()
    let text = ''
    for (;;) {
      const found = /^([\s\S]*?)\n?\nstatus (\d+) end\n$/.exec(`\n${text}`)
      if (found) {
        expect([command, found[2]]).toEqual([command, '0'])
        return (found[1] ?? '').trim()
      }
      const { value, done } = await lines.next()
      if (done) throw new Error(`the shell ended at ${command}: ${text}`)
      text += decoder.decode(value, { stream: true })
    }
  }

  const steps = pages.flatMap(stepsOf)
  expect(steps.length).toBeGreaterThan(15)
  for (const { command, output } of steps) {
    const typed = command.replaceAll(gatewayUrl, url).replaceAll(provider, `${upstream.url}/v1`)
    const printed = command === 'npm start' ? started.trim() : await type(typed)
    const shown = printed.replaceAll(url, gatewayUrl)
    // The page says that this takes up to a second; here the machine may be busy.
    while (command.includes('> tollgate.yaml') && !(await hasModel(url, 'acme/large'))) await Bun.sleep(20)
    if (output !== '') expect([command, shown]).toEqual([command, expect.stringMatching(patternOf(output))])
  }
})
