// The gateway compiled into one program, for tests that start it often: from source, most of a start is reading and
// compiling some four hundred files. It is the program that users run.

import { join } from 'node:path'
import { compile } from '../../deploy/compile.ts'

const variable = 'TOLLGATE_TEST_PROGRAM'

export const sourceCommand: readonly string[] = [
  process.execPath,
  '--no-install',
  join(import.meta.dir, '../../src/main.ts'),
]

/** The command, before any arguments: the program that a whole test run has made, or this Bun and the source. */
export function gatewayCommand(): readonly string[] {
  const program = process.env[variable]
  return program === undefined ? sourceCommand : [program]
}

/** Compiles the program into a folder. Returns the environment variable that tells the tests where it is. */
export async function makeProgram(folder: string): Promise<Readonly<Record<string, string>>> {
  const program = join(folder, 'tollgate')
  await compile(program)
  return { [variable]: program }
}
