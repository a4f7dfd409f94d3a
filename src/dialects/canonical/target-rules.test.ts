import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const dialects = join(import.meta.dir, '..')

/** Read where usage is validated, which is not the business of a dialect. */
const readElsewhere = new Set(['capExcludesReasoning'])

/** Everything in the dialects that could ask for a rule. */
const askers = readdirSync(dialects, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.endsWith('target-rules.ts'))
  .map((file) => readFileSync(join(dialects, file), 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*\*).*$/gm, ''))

const rules = [...readFileSync(join(import.meta.dir, 'target-rules.ts'), 'utf8').matchAll(/^ {2}readonly (\w+)\?:/gm)]
  .map(([, name]) => name as string)
  .filter((name) => !readElsewhere.has(name))

test('there are rules to be read', () => {
  expect(rules).toContain('toolsWithReasoning')
  expect(rules.length).toBeGreaterThan(30)
})

// A rule that no code reads changes nothing: it would only seem to be obeyed.
test.each(rules)('a dialect reads %s', (name) => {
  const asks = new RegExp(
    [
      `rules\\??\\.${name}\\b`,
      `\\{[^{}]*\\b${name}\\b[^{}]*\\}: TargetRules`,
      `\\b${name}\\b[^{}=]*\\} = [\\w.]*rules\\b`,
      // A row of a sampling table; render.test.ts of each dialect checks that the row is obeyed.
      `when: \\(\\{ ${name} \\}(?:, value)?\\) => ${name}\\b`,
    ].join('|'),
  )
  expect(askers.some((text) => asks.test(text))).toBe(true)
})
