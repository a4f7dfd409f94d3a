// A part of the soak as a separate process that reports what it has done in lines of JSON.

import { join } from 'node:path'

export interface SoakChild<Counts> extends AsyncDisposable {
  readonly firstLine: Promise<string>
  /** Its last counts. */
  last(): Counts | undefined
  say(line: string): void
  readonly exited: Promise<number>
  end(): Promise<void>
}

export async function startSoakChild<Counts>(file: string, args: readonly string[]): Promise<SoakChild<Counts>> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, file), ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const first = Promise.withResolvers<string>()
  let last: Counts | undefined
  const take = (line: string) => {
    if (line.startsWith('{')) last = JSON.parse(line) as Counts
    first.resolve(line)
  }
  const read = (async () => {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of child.stdout) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) take(line)
    }
    first.reject(new Error(`${file} ended before it said anything`))
  })()
  // The process that started it may end before it does.
  const killAtExit = () => child.kill('SIGKILL')
  process.on('exit', killAtExit)
  const exited = child.exited.then(async (code) => {
    process.off('exit', killAtExit)
    await read
    return code
  })
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    firstLine: first.promise,
    last: () => last,
    say: (line) => {
      child.stdin.write(`${line}\n`)
      child.stdin.flush()
    },
    exited,
    end,
    [Symbol.asyncDispose]: end,
  }
}
