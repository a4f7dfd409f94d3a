import { expect, test } from 'bun:test'
import { isVersionDate } from './version.ts'

test.each(['2023-06-01', '2024-02-29', '2000-02-29', '2099-12-31'])('%s is a date', (text) => {
  expect(isVersionDate(text)).toBe(true)
})

const none = ['2023-02-30', '2023-02-29', '1900-02-29', '2023-04-31', '2023-13-01', '2023-00-10', '2023-01-00']
test.each([...none, '0000-01-01', '2023-6-1', '2023-06-01 ', 'latest'])('%s is none', (text) => {
  expect(isVersionDate(text)).toBe(false)
})
