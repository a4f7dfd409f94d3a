// The repository's documentation as Markdown, by its path below docs/: `operate/deploy.md`. The single file has no such
// folder: deploy/compile.ts puts the texts in the place of this module.

import { existsSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dir, '../../docs')

/** Decisions are for people who change the gateway; they stay in the repository. */
const isPublished = (path: string) => !path.startsWith('decisions/')

/** Empty where the folder was not installed. */
export async function readDocs(): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>()
  if (!existsSync(folder)) return texts
  for await (const path of new Bun.Glob('**/*.md').scan(folder)) {
    if (isPublished(path)) texts.set(path, await Bun.file(join(folder, path)).text())
  }
  return texts
}
