import { expect, test } from 'bun:test'
import { Writable } from 'node:stream'
import { createLogOutput } from './log-output.ts'

test('a reader that stalls costs bounded memory, and the lines beyond that', async () => {
  const waiting: (() => void)[] = []
  let written = ''
  const stalled = new Writable({
    decodeStrings: false,
    write(text: string, _encoding, done) {
      waiting.push(() => {
        written += text
        done()
      })
    },
  })
  const recovered: number[] = []
  const output = createLogOutput(stalled, (lines) => recovered.push(lines), 10)
  output.write('one\n')
  output.write('two\n')
  output.write('three\nfour\n')
  expect(output.dropped()).toBe(2)
  for (let next = waiting.shift(); next; next = waiting.shift()) next()
  expect(written).toBe('one\ntwo\n')
  await Bun.sleep(0)
  expect(recovered).toEqual([2])
})

test('the line after a failed write starts on its own line', () => {
  const results = [undefined, new Error('no space left'), undefined, undefined]
  let written = ''
  const stream = {
    write(text: string, done: (error?: Error) => void) {
      const error = results.shift()
      written += error ? text.slice(0, 3) : text
      done(error)
      return true
    },
  }
  const recovered: number[] = []
  const output = createLogOutput(stream as unknown as Writable, (lines) => recovered.push(lines))
  for (const line of ['first', 'second', 'third', 'fourth']) output.write(`${line}\n`)
  expect(written).toBe('first\nsec\nthird\nfourth\n')
  expect(recovered).toEqual([1])
  expect(output.dropped()).toBe(1)
})
