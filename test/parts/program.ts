// The gateway as one program, for tests that start it again and again: from source, most of a start is reading and
// compiling some four hundred files. It is the program that users get.

import { join } from 'node:path'
import { compile } from '../../deploy/compile.ts'

const variable = 'TOLLGATE_TEST_PROGRAM'

export const sourceCommand: readonly string[] = [
  process.execPath,
  '--no-install',
  join(import.meta.dir, '../../src/main.ts'),
]

/** What to run, before any arguments: the program that a whole test run has made, or this Bun and the source. */
export function gatewayCommand(): readonly string[] {
  const program = process.env[variable]
  return program === undefined ? sourceCommand : [program]
}

/** Makes the program in a folder, and answers with the environment that names it to the tests. */
export async function makeProgram(folder: string): Promise<Readonly<Record<string, string>>> {
  const program = join(folder, 'tollgate')
  await compile(program)
  return { [variable]: program }
}
