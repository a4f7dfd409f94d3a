import { describe, expect, test } from 'bun:test'
import { type Kind, lists, pagePath, readNamed, renderPage } from './page.ts'

const named = await readNamed()

describe.each(['vector', 'pitfall'] as Kind[])('every %s', (kind) => {
  const { topics, reasons } = lists[kind]
  const numbers = Object.keys(topics).map(Number)

  test('has a test that names it, or a reason why there is none', () => {
    const open = numbers.filter((number) => !named[kind].has(number) && reasons[number] === undefined)
    expect(open).toEqual([])
  })

  test('with a test has no reason left', () => {
    expect(Object.keys(reasons).filter((number) => named[kind].has(Number(number)))).toEqual([])
  })

  test('that is named or reasoned about is known', () => {
    const said = [...named[kind].keys(), ...Object.keys(reasons).map(Number)]
    expect(said.filter((number) => topics[number] === undefined)).toEqual([])
  })
})

test('the list of pitfalls is complete', () => {
  expect(Object.keys(lists.pitfall.topics)).toHaveLength(185)
})

test('docs/translation-coverage.md is what the tests say', async () => {
  // Stale? bun test/conformance/numbered/write-page.ts
  expect(await Bun.file(pagePath).text()).toBe(renderPage(named))
})
