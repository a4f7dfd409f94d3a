import { expect, test } from 'bun:test'
import { MergeBudget } from '../anthropic-messages/merge-all-of.ts'
import { fitsSubset } from '../anthropic-messages/schema-subset.ts'
import { subsetSchema } from '../gemini/schema-subset.ts'
import { SchemaBudget } from './schema-budget.ts'

const schema = (length: number) => {
  const [front, behind] = ['{"type":"string","description":"', '"}']
  return front + 'x'.repeat(length - front.length - behind.length) + behind
}

test('a schema may have 200,000 characters, and all of a request a million', () => {
  const budget = new SchemaBudget()
  expect(budget.take(schema(200_001))).toBe('it is longer than 200000 characters')
  for (let taken = 0; taken < 4; taken++) expect(budget.take(schema(200_000))).toBeUndefined()
  expect(budget.take(schema(199_000))).toBeUndefined()
  expect(budget.take(schema(1001))).toBe('the schemas of a request may have 1000000 characters together')
  expect(budget.take(schema(1000))).toBeUndefined()
})

test('both dialects that change schemas hold to it', () => {
  const [budget, merges] = [new SchemaBudget(), new MergeBudget()]
  for (let taken = 0; taken < 5; taken++) {
    expect(subsetSchema(schema(200_000), budget)).toMatchObject({ loosened: false })
    expect(fitsSubset(schema(200_000), merges)).toBe(true)
  }
  expect(subsetSchema(schema(100), budget)).toContain('together')
  expect(fitsSubset(schema(100), merges)).toBe(false)
})
