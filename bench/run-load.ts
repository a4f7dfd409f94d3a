// Runs a load generator in a separate process, so that its work and its garbage are not the contender's or ours.

import { join } from 'node:path'
import type { LoadPlan, LoadResult } from './load.ts'

/** Undefined when interrupted. */
export async function runLoad(plan: LoadPlan, interrupted?: AbortSignal): Promise<LoadResult | undefined> {
  const output = await runProgram('load.ts', plan, interrupted)
  return output === undefined ? undefined : (JSON.parse(output) as LoadResult)
}

/** The output of a program of this folder for a plan on its standard input. */
export async function runProgram(
  program: string,
  plan: unknown,
  interrupted?: AbortSignal,
): Promise<string | undefined> {
  const child = Bun.spawn([process.execPath, '--no-install', join(import.meta.dir, program)], {
    stdin: new Blob([JSON.stringify(plan)]),
    stdout: 'pipe',
    stderr: 'inherit',
    ...(interrupted ? { signal: interrupted } : {}),
  })
  const output = await new Response(child.stdout).text()
  return interrupted?.aborted ? undefined : output
}
