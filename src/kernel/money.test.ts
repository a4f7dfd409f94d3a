import { expect, test } from 'bun:test'
import { formatPricePer, formatUsd, type Nano, type Pico, parsePricePer, parseUsd } from './money.ts'

test.each([
  ['0', 0n],
  ['0.00', 0n],
  ['5', 5_000_000_000n],
  ['5.00', 5_000_000_000n],
  ['12.5', 12_500_000_000n],
  ['0.000000001', 1n],
  ['1000000', 1_000_000_000_000_000n],
  ['9999999999.999999999', 9_999_999_999_999_999_999n],
])('reads %s dollars exactly', (text, nanos) => {
  expect(parseUsd(text)).toBe(nanos as Nano)
})

test.each([
  '',
  '.5',
  '5.',
  '05',
  '-1',
  '+1',
  '1e3',
  '1,000',
  '$5',
  ' 5',
  '5\n',
  '0x10',
  'NaN',
  '٥',
  '0.0000000001',
  '10000000000',
  '1'.repeat(40),
])('does not take %p for an amount', (text) => {
  expect(parseUsd(text)).toBeUndefined()
})

test.each(['0.00', '5.00', '12.50', '0.000000001', '1234567.890000001'])('writes %s as it was read', (text) => {
  const amount = parseUsd(text)
  expect(amount === undefined ? undefined : formatUsd(amount)).toBe(text)
})

test('a price per quantity is exact for one unit, or is none', () => {
  // $10 / 1000 = 1 cent = 10,000,000,000 pico-dollars; $0.06 / 60 = 0.1 cent.
  expect(parsePricePer(1000n, '10.00')).toBe(10_000_000_000n as Pico)
  expect(parsePricePer(60n, '0.06')).toBe(1_000_000_000n as Pico)
  expect(parsePricePer(60n, '0.10')).toBeUndefined()
  expect(formatPricePer(60n, 1_000_000_000n as Pico)).toBe('0.06')
  expect(formatPricePer(1000n, 10_000_000_000n as Pico)).toBe('10.00')
})
