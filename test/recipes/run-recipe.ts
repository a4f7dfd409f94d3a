// Runs a recipe the way a user would: as a program of its own, with nothing in its environment but an address and a
// key. It hands back what was printed and judges nothing.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RecipeClient, root, type Surface } from './client.ts'
import type { Gate } from './gates.ts'
import { readCurl } from './read-curl.ts'

export interface Printed {
  /** What an example printed; undefined if the program never came to it. */
  example(surface: Surface, name: string): unknown
  /** Everything, for a failure's message. */
  readonly output: string
}

/** Ends a recipe that hangs. The slowest takes a few seconds, and minutes on a machine under heavy load. */
const runMs = 1_200_000

export async function runRecipe(client: RecipeClient, gate: Gate): Promise<Printed> {
  const home = mkdtempSync(join(tmpdir(), 'tollgate-recipe-'))
  try {
    const child = Bun.spawn(client.command(home), {
      cwd: root,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: runMs,
      killSignal: 'SIGKILL',
      env: { PATH: process.env.PATH ?? '', HOME: home, TOLLGATE_URL: gate.url, TOLLGATE_KEY: gate.key },
    })
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    const found = client.raw ? readCurl(output) : readLines(output, client.surfaces)
    return { example: (surface, name) => found.get(`${surface} ${name}`), output: `${output}${errors}` }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** `text {"text":…}`, or `chat text {"text":…}` where a recipe shows both surfaces. */
function readLines(output: string, [only]: readonly Surface[]): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const [, surface = only, name, json = ''] of output.matchAll(/^(?:(chat|messages) )?(\w+) (.+)$/gm)) {
    try {
      found.set(`${surface} ${name}`, JSON.parse(json))
    } catch {
      // Some other line; what is missing is found missing.
    }
  }
  return found
}
