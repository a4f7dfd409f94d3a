import { expect, test } from 'bun:test'
import { createFailpoint, parseFailpoints } from './failpoint.ts'

test('a plan is a place, what happens there, to which share, and how many are let pass before', () => {
  expect(parseFailpoints('before_settle=kill:0.01,after_hold=throw, mid_stream=hang:1:500')).toEqual([
    { name: 'before_settle', action: 'kill', share: 0.01, passes: 0 },
    { name: 'after_hold', action: 'throw', share: 1, passes: 0 },
    { name: 'mid_stream', action: 'hang', share: 1, passes: 500 },
  ])
})

test('a plan of another form is none', () => {
  for (const text of [
    '',
    'nowhere=kill',
    'after_hold=run',
    'after_hold=kill:2',
    'after_hold=kill:1:',
    'after_hold=kill:1:-1',
  ])
    expect(parseFailpoints(text)).toBeUndefined()
})

test('lets the first passes, other places and passes outside the share go through', () => {
  const rolls = [0.5, 0.4, 0.1]
  let kills = 0
  const reach = createFailpoint([{ name: 'after_hold', action: 'kill', share: 0.3, passes: 2 }], {
    random: () => rolls.shift() ?? 0,
    kill: () => kills++,
  })
  // Two pass unasked, the dice save two more, and another place counts for itself.
  for (let call = 0; call < 4; call++) expect(reach('after_hold')).toBeUndefined()
  expect(reach('after_send')).toBeUndefined()
  expect(rolls).toEqual([0.1])
  expect(kills).toBe(0)
  expect(reach('after_hold')).toBeInstanceOf(Promise)
  expect(kills).toBe(1)
})
