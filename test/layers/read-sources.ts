// Reads the sources of the product from disk for the rules, which themselves touch no files.

import { join } from 'node:path'
import type { Sources } from './rules.ts'

/** Every TypeScript file in src, by its path from the root of the repository. */
export async function readSources(root: string): Promise<Sources> {
  const paths = await Array.fromAsync(new Bun.Glob('src/**/*.{ts,tsx}').scan({ cwd: root }))
  return new Map(await Promise.all(paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)))
}
