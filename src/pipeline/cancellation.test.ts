import { expect, test } from 'bun:test'
import { abortSignalOf } from '../providers/call-endpoint.ts'
import { Cancellation } from './deadline.ts'

test('calls each listener once, functions and objects, with the reason set', () => {
  const cancellation = new Cancellation()
  const calls: unknown[] = []
  cancellation.addEventListener('abort', () => calls.push(cancellation.reason))
  cancellation.addEventListener('abort', { handleEvent: () => calls.push('object') })
  expect(cancellation.aborted).toBe(false)
  cancellation.abort()
  cancellation.abort()
  expect(cancellation.aborted).toBe(true)
  expect(calls).toEqual([expect.objectContaining({ name: 'AbortError' }), 'object'])
})

test('does not call a listener that was removed, or added after the abort', () => {
  const cancellation = new Cancellation()
  const calls: string[] = []
  const removed = () => void calls.push('removed')
  cancellation.addEventListener('abort', removed)
  cancellation.removeEventListener('abort', removed)
  cancellation.abort()
  cancellation.addEventListener('abort', () => void calls.push('late'))
  expect(calls).toEqual([])
})

test('the signal for fetch follows a cancellation, before and after it aborts', () => {
  const cancellation = new Cancellation()
  const signal = abortSignalOf(cancellation)
  expect(signal.aborted).toBe(false)
  cancellation.abort()
  expect(signal.aborted).toBe(true)
  expect(signal.reason).toBe(cancellation.reason)
  expect(abortSignalOf(cancellation).aborted).toBe(true)
  const own = new AbortController().signal
  expect(abortSignalOf(own)).toBe(own)
})
