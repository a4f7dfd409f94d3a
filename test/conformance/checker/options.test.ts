import { describe, expect, test } from 'bun:test'
import { readConformanceOptions } from './options.ts'

const url = ['--base-url', 'http://127.0.0.1:8080']

describe('the arguments of conformance', () => {
  test('are read in both spellings, and slashes at the end do not count', () => {
    expect(readConformanceOptions(['--base-url', 'https://x.test/v1/', '--api-key', 'k', '--json'])).toEqual({
      baseUrl: 'https://x.test/v1',
      apiKey: 'k',
      dialect: undefined,
      model: undefined,
      json: true,
    })
    expect(readConformanceOptions(['--base-url=https://x.test', '--dialect=messages', '--model=a/b=c'])).toEqual({
      baseUrl: 'https://x.test',
      apiKey: undefined,
      dialect: 'messages',
      model: 'a/b=c',
      json: false,
    })
  })

  const faults: [fault: RegExp, args: string[]][] = [
    [/--base-url is missing/, []],
    [/--base-url is missing/, ['--json']],
    [/starts with http/, ['--base-url', 'localhost:8080']],
    [/starts with http/, ['--base-url', 'http://x.test/?a=1']],
    [/--base-url needs a value/, ['--base-url']],
    [/--model needs a value/, [...url, '--model=']],
    [/--base-url is given twice/, [...url, ...url]],
    [/must be chat or messages, not gemini/, [...url, '--dialect', 'gemini']],
    [/"--modle" is not understood \(did you mean --model\?\)/, [...url, '--modle', 'x']],
    [/"extra" is not understood$/, [...url, 'extra']],
  ]
  test.each(faults)('are refused with %p', (fault, args) => {
    expect(readConformanceOptions(args)).toEqual({ fault: expect.stringMatching(fault) })
  })
})
