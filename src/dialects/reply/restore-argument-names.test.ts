import { expect, test } from 'bun:test'
import type { ReplyEvent } from '../canonical/reply-event.ts'
import { RestoreArgumentNames } from './restore-argument-names.ts'

const tools = new Map([['f', new Map([['_filter_1', '$fil"ter']])]])

/** What the caller gets of a call whose arguments come in these pieces. */
function restored(name: string, pieces: readonly string[]): string {
  const stage = new RestoreArgumentNames(tools)
  const events: ReplyEvent[] = [
    { type: 'block-start', block: { kind: 'tool-call', id: 't', name, custom: false } },
    ...pieces.map((text) => ({ type: 'arguments-delta', text }) as const),
    { type: 'block-end' },
  ]
  const passed = events.flatMap((event) => [...stage.push(event)])
  expect([passed[0]?.type, passed.at(-1)?.type]).toEqual(['block-start', 'block-end'])
  return passed.flatMap((event) => (event.type === 'arguments-delta' ? [event.text] : [])).join('')
}

test('names at the root are the caller’s again, however the arguments are cut; nothing else changes', () => {
  const written =
    '{ "_filter_1" : "_filter_1", "a":["_filter_1",{"_filter_1":1.0}],"b\\"":{"_filter_1":"},\\"_filter_1\\":"},\n"_filter_1":[]}'
  const wanted =
    '{ "$fil\\"ter" : "_filter_1", "a":["_filter_1",{"_filter_1":1.0}],"b\\"":{"_filter_1":"},\\"_filter_1\\":"},\n"$fil\\"ter":[]}'
  for (let cut = 0; cut <= written.length; cut++) {
    expect(restored('f', [written.slice(0, cut), written.slice(cut)])).toBe(wanted)
  }
  expect(restored('f', [...written])).toBe(wanted)
  expect(restored('g', [written])).toBe(written)
})

test('arguments that are no object, or break off, pass as they are', () => {
  for (const written of ['', '"_filter_1"', '["_filter_1"]', '{"_filt', '{"a":"_filter_1', 'nonsense, "_filter_1"']) {
    expect(restored('f', [written])).toBe(written)
  }
})
