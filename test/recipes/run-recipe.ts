// Runs a recipe the way a user would: as a separate process, with nothing in its environment but an address and a key.
// Returns what was printed and checks nothing.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RecipeClient, root, type Surface } from './client.ts'
import type { Gate } from './gates.ts'
import { readCurl } from './read-curl.ts'

export interface Printed {
  /** The output of an example; undefined if the program ended before it. */
  example(surface: Surface, name: string): unknown
  /** Everything, for a failure's message. */
  readonly output: string
}

/** Ends a recipe that hangs. The slowest takes a few seconds, and minutes on a machine under heavy load. */
const runMs = 1_200_000

/** Runs the recipe behind each gate at the same time: it often waits, for its process to start and for a stream to time out. */
export async function runRecipe(client: RecipeClient, gates: readonly Gate[]): Promise<Printed[]> {
  const { command, forkCommand } = client
  const outputs = forkCommand ? runForks(forkCommand, gates) : Promise.all(gates.map((gate) => runAlone(command, gate)))
  return (await outputs).map((output) => {
    const found = client.raw ? readCurl(output) : readLines(output, client.surfaces)
    return { example: (surface, name) => found.get(`${surface} ${name}`), output }
  })
}

async function runAlone(command: RecipeClient['command'], { url, key }: Gate): Promise<string> {
  return inFolder((home) => run(command(home), home, { TOLLGATE_URL: url, TOLLGATE_KEY: key }))
}

async function runForks(command: readonly string[], gates: readonly Gate[]): Promise<string[]> {
  return inFolder(async (home) => {
    const file = ({ name }: Gate) => join(home, name)
    const printed = await run([...command, ...gates.flatMap((gate) => [file(gate), gate.url, gate.key])], home)
    return gates.map((gate) => (existsSync(file(gate)) ? readFileSync(file(gate), 'utf8') : '') + printed)
  })
}

async function inFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-recipe-'))
  try {
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function run(command: readonly string[], home: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: runMs,
    killSignal: 'SIGKILL',
    env: { PATH: process.env.PATH ?? '', HOME: home, ...env },
  })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return `${output}${errors}`
}

/** `text {"text":…}`, or `chat text {"text":…}` where a recipe shows several surfaces. */
function readLines(output: string, [only]: readonly Surface[]): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [, surface = only, name, json = ''] of output.matchAll(
    /^(?:(chat|messages|responses|gemini) )?(\w+) (.+)$/gm,
  )) {
    try {
      found.set(`${surface} ${name}`, JSON.parse(json))
    } catch {
      // Some other line. A missing example fails its test.
    }
  }
  return found
}
