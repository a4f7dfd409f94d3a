// The table of clients in the documentation: where it stands, what a row looks like, and which rows are there now.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { counts, type RecipeClient, root, type Surface } from './client.ts'
import { exampleNames } from './expected.ts'

export type TableClient = Pick<RecipeClient, 'name' | 'version' | 'packages' | 'by' | 'recipe' | 'examples'>

const opening = '<!-- clients -->'
const closing = '<!-- /clients -->'

/** The first of these pages that has a place for it. */
function page(): { path: string; text: string; toRecipes: string } {
  for (const [path, toRecipes] of [
    ['docs/compatibility.md', 'recipes/'],
    ['docs/recipes/README.md', ''],
  ] as const) {
    const file = join(root, path)
    const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
    if (text.includes(opening) && text.includes(closing)) return { path: file, text, toRecipes }
  }
  throw new Error(`no page has a place for the table (${opening} … ${closing})`)
}

function section(text: string): { before: string; inside: string; after: string } {
  const start = text.indexOf(opening) + opening.length
  const end = text.indexOf(closing)
  return { before: text.slice(0, start), inside: text.slice(start, end), after: text.slice(end) }
}

/** Every cell says that the example printed what it must behind every gate; a dash, that the recipe has none. */
export function renderRow(client: TableClient, surface: Surface, passed: (example: string) => boolean): string {
  const cells = exampleNames.map((name) => {
    if (!client.examples.includes(name) || (name === 'count' && !counts(surface))) return '–'
    return passed(name) ? '✓' : '✗'
  })
  const link = `[${client.name}](${page().toRecipes}${client.recipe})`
  return `${rowStart(link, client, surface)} ${cells.join(' | ')} |`
}

function rowStart(link: string, { version, packages, by }: TableClient, surface: Surface): string {
  return `| ${link} | ${packages ? `${version}, ${packages[surface]}` : version} | ${by} | ${surface} |`
}

/** The row that is there for this client in this version. */
export function documentedRow(client: TableClient, surface: Surface): string | undefined {
  const { text, toRecipes } = page()
  const start = rowStart(`[${client.name}](${toRecipes}${client.recipe})`, client, surface)
  return section(text)
    .inside.split('\n')
    .find((line) => line.startsWith(start))
}

export function writeTable(rows: readonly string[]): string {
  const { path, text } = page()
  const { before, after } = section(text)
  const head = ['client', 'version', 'run by', 'surface', ...exampleNames]
  const lines = [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...rows]
  writeFileSync(path, `${before}\n${lines.join('\n')}\n${after}`)
  return path
}
