import { expect, test } from 'bun:test'
import { sandboxEntries } from '../../../test/parts/web.ts'
import { isPrivate, seenEntries, withOwnModels } from './seen-entries.ts'
import { modelStanding } from './standing.ts'

test('without a viewer everything is shown as it is', () => {
  const entries = sandboxEntries()
  expect(seenEntries(entries, undefined)).toBe(entries)
})

test('a viewer sees exactly the models that the gateway names, with what the catalog knows of them', () => {
  const shown = seenEntries(sandboxEntries(), [
    { id: 'sandbox/echo', owned_by: 'sandbox' },
    { id: 'sandbox/cache', owned_by: 'sandbox', own_key: true },
    { id: 'acme/private', owned_by: 'acme', own_key: true },
  ])
  expect(shown.map(({ id, own_key }) => [id, own_key ?? false])).toEqual([
    ['sandbox/echo', false],
    ['sandbox/cache', true],
    ['acme/private', true],
  ])
  expect(shown.map(isPrivate)).toEqual([false, false, true])
  expect(shown[0]?.name).toBe('Sandbox Echo')
  // It is callable, although nobody here knows its price.
  const [, , unlisted] = shown
  expect(unlisted && modelStanding(unlisted).word).toBe('own key')
})

test('what own keys open is added to the catalog in its place, and what they serve too is marked', () => {
  const entries = sandboxEntries()
  expect(withOwnModels(entries, [])).toBe(entries)
  const shown = withOwnModels(entries, [
    { id: 'acme/private', owned_by: 'acme', own_key: true },
    { id: 'sandbox/cache', owned_by: 'sandbox', own_key: true },
  ])
  expect(shown.map(({ id }) => id)).toEqual(['acme/private', ...entries.map(({ id }) => id).sort()])
  expect(shown.filter(({ own_key }) => own_key).map(({ id }) => id)).toEqual(['acme/private', 'sandbox/cache'])
  expect(shown.filter(isPrivate).map(({ id, callable }) => [id, callable])).toEqual([['acme/private', true]])
})
