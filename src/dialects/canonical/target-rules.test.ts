import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const dialects = join(import.meta.dir, '..')

/** Read in the pipeline, where usage is validated. */
const readElsewhere = new Set(['capExcludesReasoning'])

/** Every file of the dialects that could read a rule. */
const readers = readdirSync(dialects, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.endsWith('target-rules.ts'))
  .map((file) => readFileSync(join(dialects, file), 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*\*).*$/gm, ''))

const rules = [...readFileSync(join(import.meta.dir, 'target-rules.ts'), 'utf8').matchAll(/^ {2}readonly (\w+)\?:/gm)]
  .map(([, name]) => name as string)
  .filter((name) => !readElsewhere.has(name))

test('there are rules to be read', () => {
  expect(rules).toContain('toolsWithReasoning')
  expect(rules.length).toBeGreaterThan(30)
})

// A rule that no renderer reads changes nothing: a model's data would only seem to be respected.
test.each(rules)('%s is read', (name) => {
  const reads = [
    `rules\\??\\.${name}\\b`,
    `\\{[^{}]*\\b${name}\\b[^{}]*\\}: TargetRules`,
    `\\b${name}\\b[^{}=]*\\} = [\\w.]*rules\\b`,
    // A row of a settings table.
    `when: \\(\\{[^{}]*\\b${name}\\b[^{}]*\\}\\) =>`,
  ]
  expect(readers.some((text) => new RegExp(reads.join('|')).test(text))).toBe(true)
})
