import { expect, test } from 'bun:test'
import { z } from 'zod'
import {
  defaultText,
  description,
  type ProcessFacts,
  setting,
  settingValues,
  shownValue,
  valuesText,
} from './setting.ts'

const facts: ProcessFacts = { cwd: '/srv', stdoutIsTerminal: true, usesPostgres: false }

const inMinutes = z.codec(z.number().min(0).max(60), z.int(), { decode: (m) => m * 60, encode: (s) => s / 60 })

const rows = {
  port: setting(z.int().min(0).max(9), { default: 8, help: 'port; 0 = any' }),
  wait_minutes: setting(inMinutes, { member: 'waitSeconds', default: 2, unit: 'minutes', help: 'the `longest` wait' }),
  folder: setting(z.string(), { default: './here', isPath: true, help: 'folder' }),
  form: setting(z.enum(['a', 'b']), {
    default: ({ stdoutIsTerminal }: ProcessFacts) => (stdoutIsTerminal ? 'a' : 'b'),
    unset: '`a` on a terminal, otherwise `b`',
    help: 'form',
  }),
  limit: setting(z.int().min(1).max(5), { unset: 'unlimited', help: 'limit' }),
  hosts: setting(z.array(z.string()), { default: [], help: '[hosts](hosts.md) to call' }),
  price: setting(z.string(), { default: '1.00', help: 'price' }),
}

// These two lines check `setting` when types are checked; they assert nothing at run time.
// @ts-expect-error The schema takes numbers.
export const wrongDefault = () => setting(z.int(), { default: 'eight', help: '' })
// @ts-expect-error `defualt` is no member of a row.
export const misspelt = () => setting(z.int(), { defualt: 8, help: '' })

test('gives the values of Config, converted and with defaults', () => {
  const byDefault = settingValues(rows, {}, facts)
  // Assignments check the inferred types.
  const seconds: number = byDefault.waitSeconds
  const limit: number | undefined = byDefault.limit
  const form: 'a' | 'b' = byDefault.form
  // @ts-expect-error A setting without a default may be undefined.
  const wrong: number = byDefault.limit
  expect([seconds, limit, form, wrong]).toEqual([120, undefined, 'a', undefined])
  expect(byDefault).toMatchObject({ port: 8, folder: '/srv/here', hosts: [], price: '1.00' })
  expect(settingValues(rows, { form: 'b', limit: 3, folder: '/there' }, facts)).toMatchObject({
    form: 'b',
    limit: 3,
    folder: '/there',
  })
})

test('shows a value as the file would set it, or in words if there is none', () => {
  expect(shownValue(rows.wait_minutes, 90)).toBe('1.5')
  expect(shownValue(rows.hosts, ['a', 'b'])).toBe('a, b')
  expect(shownValue(rows.hosts, [])).toBe('none')
  expect(shownValue(rows.limit, undefined)).toBe('unlimited')
})

test('describes values and defaults', () => {
  const texts = Object.values(rows).map((row) => [valuesText(row), defaultText(row)])
  expect(texts).toEqual([
    ['0 to 9', '`8`'],
    ['0 to 60 minutes', '`2` minutes'],
    ['text', '`./here`'],
    ['`a`, `b`', '`a` on a terminal, otherwise `b`'],
    ['1 to 5', 'unlimited'],
    ['list', 'none'],
    ['text', '`"1.00"`'],
  ])
})

test('describes a setting for editors in plain sentences', () => {
  expect(description(rows.wait_minutes)).toBe('The longest wait. Default 2 minutes.')
  expect(description(rows.form)).toBe('Form. Default: a on a terminal, otherwise b.')
  expect(description(rows.hosts)).toBe('Hosts to call. Default: none.')
})
