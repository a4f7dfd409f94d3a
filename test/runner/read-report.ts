// Reads Bun's JUnit report of a run: what passed, failed and was skipped, by name, and how long each file took.

export interface Report {
  readonly passed: number
  readonly failed: readonly string[]
  readonly skipped: readonly string[]
  /** Of each file. */
  readonly seconds: ReadonlyMap<string, number>
}

/** A file that could not be loaded is not in the report. It counts as failed if it is one of `files`. */
export function readReport(xml: string, files: readonly string[]): Report {
  const failed: string[] = []
  const skipped: string[] = []
  const seconds = new Map<string, number>()
  let passed = 0
  for (const [, attributes = '', inside = ''] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)) {
    const file = attribute(attributes, 'file')
    // Bun writes the inner group first.
    const groups = attribute(attributes, 'classname').split(' > ').filter(Boolean).reverse()
    const name = `${file}: ${[...groups, attribute(attributes, 'name')].join(' > ')}`
    seconds.set(file, 0)
    if (/<(?:failure|error)\b/.test(inside)) failed.push(name)
    else if (inside.includes('<skipped')) skipped.push(name)
    else passed += 1
  }
  // A file is a group of its own. The times of its tests do not add up to its time where they run at once.
  for (const [, attributes = ''] of xml.matchAll(/<testsuite ([^>]*)>/g)) {
    const file = attribute(attributes, 'file')
    if (attribute(attributes, 'name') === file && seconds.has(file))
      seconds.set(file, Number(attribute(attributes, 'time')))
  }
  for (const file of files) {
    if (!seconds.has(file)) failed.push(`${file}: could not be loaded, or holds no test`)
  }
  return { passed, failed, skipped, seconds }
}

const entities: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'", '&amp;': '&' }

function attribute(attributes: string, name: string): string {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
  return value.replace(/&\w+;/g, (entity) => entities[entity] ?? entity)
}
