// docs/translation-coverage.md: which test stands for which vector and pitfall, found by the names of the tests.

import { join } from 'node:path'
import { pitfalls } from './pitfalls.ts'
import { pitfallReasons, pitfallRemarks, type Topics, vectorReasons, vectorRemarks } from './topics.ts'
import { vectors } from './vectors.ts'

const root = join(import.meta.dir, '../../..')
export const pagePath = join(root, 'docs/translation-coverage.md')

export type Kind = 'vector' | 'pitfall'

/** By kind and number, the files whose tests name it, sorted. */
export type Named = Readonly<Record<Kind, ReadonlyMap<number, readonly string[]>>>

interface List {
  readonly topics: Topics
  /** Why there is no test. */
  readonly reasons: Topics
  /** Gaps in the tests. */
  readonly remarks: Topics
}

export const lists: Readonly<Record<Kind, List>> = {
  vector: { topics: vectors, reasons: vectorReasons, remarks: vectorRemarks },
  pitfall: { topics: pitfalls, reasons: pitfallReasons, remarks: pitfallRemarks },
}

/** The beginning of a name: `vector 5:`, `pitfall 8, 10 and 150:`, `vector 95, pitfall 146:`. */
const names = /['"`]((?:(?:vector|pitfall) \d+(?:(?:, | and )\d+)*(?:, )?)+):/g

export async function readNamed(): Promise<Named> {
  const found = { vector: new Map<number, string[]>(), pitfall: new Map<number, string[]>() }
  const files = await Array.fromAsync(new Bun.Glob('{src,test}/**/*.test.ts').scan({ cwd: root }))
  for (const file of files.sort()) {
    const text = await Bun.file(join(root, file)).text()
    for (const [, head = ''] of text.matchAll(names)) {
      for (const [, kind = '', numbers = ''] of head.matchAll(/(vector|pitfall) ([\d, and]+)/g)) {
        for (const [digits] of numbers.matchAll(/\d+/g)) note(found[kind as Kind], Number(digits), file)
      }
    }
  }
  return found
}

function note(found: Map<number, string[]>, number: number, file: string): void {
  const known = found.get(number) ?? []
  if (!known.includes(file)) found.set(number, [...known, file])
}

export function renderPage(named: Named): string {
  return `# Translation coverage

Which tests cover which golden vectors (worked-out requests, replies and errors between the dialects) and which pitfalls (publicly reported mistakes of other gateways), by number. The topics are in the table; the full texts of the lists are not published. The name of such a test begins with the number: \`vector 31: …\`, \`pitfall 60: …\`. A missing number is not in use. If a topic names several dialects, its tests cover those that callers and providers use here.

This page is made from the names of the tests by \`bun test/conformance/numbered/write-page.ts\`; a test fails when it is stale, when a number has neither a test nor a reason, and when a test names an unknown number.

## Vectors

${renderTable('vector', named)}

## Pitfalls

${renderTable('pitfall', named)}
`
}

function renderTable(kind: Kind, named: Named): string {
  const { topics, reasons, remarks } = lists[kind]
  const rows = Object.entries(topics).map(([number, topic]) => {
    const files = named[kind].get(Number(number)) ?? []
    const tests = files.map((file) => `[${file.replace(/^.*\//, '').replace('.test.ts', '')}](../${file})`).join(', ')
    const remark = remarks[Number(number)] === undefined ? '' : `. ${remarks[Number(number)]}`
    return `| ${number} | ${topic} | ${tests === '' ? (reasons[Number(number)] ?? '') : tests + remark} |`
  })
  return ['| | topic | tests |', '|---|---|---|', ...rows].join('\n')
}
