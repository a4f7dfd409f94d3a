// The static checks: types, lint, format and layers. `npm run check` prints one line for each and what failed; `npm test`
// counts them among the tests.

import { join } from 'node:path'
import { readSources } from './layers/read-sources.ts'
import { checkHouse } from './layers/rules.ts'

const root = join(import.meta.dir, '..')

export interface CheckResult {
  readonly name: string
  /** The tool's output; undefined if the check passed. */
  readonly problem: string | undefined
}

/** Several checkers are done sooner and take half as much processor time again, which the tests beside them need. */
const oneChecker = ['--checkers', '1']

const checks: Record<string, () => Promise<string | undefined>> = {
  types: () => run('tsc', '--noEmit', ...oneChecker, '--project', '.'),
  // The pages use the browser's types, which the server must not see.
  pages: () => run('tsc', '--noEmit', ...oneChecker, '--project', 'src/web/pages'),
  // It runs on Node, and its types are comments.
  challenge: () => run('tsc', '--noEmit', ...oneChecker, '--project', 'challenge'),
  // Lint includes the order of imports. Warnings fail the check.
  lint: () => run('biome', 'check', '--formatter-enabled=false', '--error-on-warnings'),
  format: () => run('biome', 'format'),
  layers: async () => checkHouse(await readSources(root)).join('\n') || undefined,
}

/** Runs every check at the same time and prints each as it ends. */
export async function runChecks(): Promise<CheckResult[]> {
  return Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const problem = await check()
      console.log(`${name.padEnd(10)}${problem === undefined ? 'ok' : `failed\n${problem.replace(/^/gm, '  ')}`}`)
      return { name, problem }
    }),
  )
}

/** Runs an installed tool. Returns its output if it fails. */
async function run(tool: string, ...args: string[]): Promise<string | undefined> {
  const child = Bun.spawn([join(root, 'node_modules/.bin', tool), ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (exitCode === 0) return undefined
  return `${output}${errors}`.trim() || `${tool} ended with exit code ${exitCode}`
}

if (import.meta.main) {
  const results = await runChecks()
  process.exitCode = results.every(({ problem }) => problem === undefined) ? 0 : 1
}
