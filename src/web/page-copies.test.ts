import { expect, test } from 'bun:test'
import { sandboxEntries } from '../../test/parts/web.ts'
import { parseQuery } from './catalog/query.ts'
import { createPageCopies } from './page-copies.ts'
import type { Frame } from './page-data.ts'

const frame: Frame = { theme: 'system', version: '1', isSignedIn: false, styleUrl: '', iconUrl: '', scriptUrl: '' }

test('visitors share the list as long as the catalog is the same, each look and question its own', () => {
  let made = 0
  const render = createPageCopies(() => String(++made))
  let entries = sandboxEntries()
  const list = (search = '', more: Partial<Frame> = {}) => {
    const data = { entries, state: 's', query: parseQuery(new URLSearchParams(search)), isSignedIn: false }
    return render({ kind: 'list', title: 'Catalog', data }, { ...frame, ...more })
  }
  expect([list(), list(), list('q=a'), list('q=a'), list('', { theme: 'dark' })]).toEqual(['1', '1', '2', '2', '3'])
  expect([list('', { isSignedIn: true }), list('', { isSignedIn: true })]).toEqual(['4', '5'])
  entries = [...entries]
  expect([list(), list()]).toEqual(['6', '6'])
})

test('what a session that ended in between was shown is nobody else’s', () => {
  let made = 0
  const render = createPageCopies(() => String(++made))
  const shared = { entries: sandboxEntries(), state: 's', query: parseQuery(new URLSearchParams()) }
  const list = (isSignedIn: boolean) =>
    render({ kind: 'list', title: 'Catalog', data: { ...shared, isSignedIn } }, frame)
  expect([list(true), list(false), list(false)]).toEqual(['1', '2', '2'])
})

test('what everyone types is not kept without end', () => {
  let made = 0
  const render = createPageCopies(() => String(++made))
  const entries = sandboxEntries()
  for (let round = 0; round < 2; round++) {
    for (let at = 0; at < 20; at++) {
      const query = parseQuery(new URLSearchParams(`q=${at}`))
      render({ kind: 'list', title: 'Catalog', data: { entries, state: 's', query, isSignedIn: false } }, frame)
    }
  }
  // Sixteen were kept, four made again.
  expect(made).toBe(24)
})
