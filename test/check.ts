// The checks that need no running program: types, lint, format and the plan of the house. `npm run check` prints one
// line for each and what failed; `npm test` counts them among the tests.

import { join } from 'node:path'
import { readSources } from './layers/read-sources.ts'
import { checkHouse } from './layers/rules.ts'

const root = join(import.meta.dir, '..')

export interface CheckResult {
  readonly name: string
  /** What to mend, as the tool said it; undefined = in order. */
  readonly problem: string | undefined
}

const checks: Record<string, () => Promise<string | undefined>> = {
  types: () => run('tsc', '--noEmit', '--project', '.'),
  // The pages know the browser's types, which would spoil the server's.
  pages: () => run('tsc', '--noEmit', '--project', 'src/web/pages'),
  // Lint includes the order of imports. A warning fails: nobody reads one twice.
  lint: () => run('biome', 'check', '--formatter-enabled=false', '--error-on-warnings'),
  format: () => run('biome', 'format'),
  layers: async () => checkHouse(await readSources(root)).join('\n') || undefined,
}

/** Runs every check at the same time and prints each as it ends. */
export async function runChecks(): Promise<CheckResult[]> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const problem = await check()
      console.log(`${name.padEnd(8)}${problem === undefined ? 'ok' : `failed\n${problem.replace(/^/gm, '  ')}`}`)
      return { name, problem }
    }),
  )
}

/** Runs an installed tool; undefined if it was content, else all that it printed. */
async function run(tool: string, ...args: string[]): Promise<string | undefined> {
  const child = Bun.spawn([join(root, 'node_modules/.bin', tool), ...args], {
    cwd: root,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (exitCode === 0) return undefined
  return `${output}${errors}`.trim() || `${tool} ended with exit code ${exitCode}`
}

if (import.meta.main) {
  const results = await runChecks()
  process.exitCode = results.every(({ problem }) => problem === undefined) ? 0 : 1
}
