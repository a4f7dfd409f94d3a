import { expect, test } from 'bun:test'
import type { Candidate } from '../routing/candidate.ts'
import { createRecord } from '../telemetry/request-record.ts'
import { AttemptNote, endAttemptsUnderWay, putLast } from './attempt-note.ts'

const candidate = (id: string) => ({ provider: { id }, route: { upstreamModel: 'up' } }) as Candidate

/** A request that began at 100 by its clock. */
function start() {
  let nowMs = 100
  const clock = { now: () => 0, monotonicMs: () => nowMs }
  const record = createRecord('req_1', 0, '/')
  return {
    record,
    pass: (milliseconds: number) => {
      nowMs += milliseconds
    },
    begin: (id: string) => new AttemptNote(record, clock, 100, candidate(id)),
    told: () => record.attempts.map(({ provider, outcome, startMs, ms }) => [provider, outcome, startMs, ms]),
  }
}

test('an attempt stands in the record from its beginning', () => {
  const { record, begin, pass, told } = start()
  pass(5)
  const note = begin('acme')
  expect(told()).toEqual([['acme', '', 5, 0]])
  pass(20)
  note.end('503')
  expect(told()).toEqual([['acme', '503', 5, 20]])
  expect(record.waitedMs).toBe(20)
})

test('one that its request did not wait for ends with it, and not again', () => {
  const { record, begin, pass, told } = start()
  begin('acme').end('503')
  pass(10)
  const note = begin('other')
  endAttemptsUnderWay(record, 'client left', 40)
  const ended = [
    ['acme', '503', 0, 0],
    ['other', 'client left', 10, 30],
  ]
  expect(told()).toEqual(ended)
  note.end('broken')
  expect(told()).toEqual(ended)
  expect(record.waitedMs).toBe(30)
})

test('a route that could not be asked leaves no trace', () => {
  const { begin, told } = start()
  const note = begin('acme')
  begin('other')
  note.remove()
  expect(told()).toEqual([['other', '', 0, 0]])
})

test('the one that answered stands last, also where it was asked before the others', () => {
  const { record, begin, told } = start()
  const stale = begin('acme')
  stale.end('broken')
  const first = begin('acme')
  const second = begin('other')
  first.end('ok')
  putLast(record, candidate('acme'))
  second.end('superseded')
  expect(told().map(([provider, outcome]) => `${provider} ${outcome}`)).toEqual([
    'acme broken',
    'other superseded',
    'acme ok',
  ])
})
