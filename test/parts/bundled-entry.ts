// The gateway as one file, for tests that start it again and again: from source, half the work of a start is reading and
// compiling some four hundred files. It serves no pages, whose scripts are made from the sources.

import { join } from 'node:path'

const sources = join(import.meta.dir, '../../src')
const variable = 'TOLLGATE_TEST_ENTRY'

/** The file to run: the one that a whole test run has made, or the source. */
export function bundledEntry(): string {
  return process.env[variable] ?? join(sources, 'main.ts')
}

/** Makes the file in a folder, and answers with the environment that names it to the tests. */
export async function bundleEntry(folder: string): Promise<Readonly<Record<string, string>>> {
  const { outputs } = await Bun.build({
    // The thread that writes is started by the name of its source, so it is an entry of its own.
    entrypoints: [join(sources, 'main.ts'), join(sources, 'store/sqlite-worker.ts')],
    naming: { entry: '[name].[ext]' },
    target: 'bun',
  })
  for (const output of outputs) await Bun.write(join(folder, output.path.replace(/\.js$/, '.ts')), output)
  return { [variable]: join(folder, 'main.ts') }
}
