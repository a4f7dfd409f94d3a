import { expect, test } from 'bun:test'
import { priceFromEntry } from './entry.ts'
import { showPrice } from './price.ts'

test('a price is shown as it was written, with every kind of token and every tier', () => {
  const price = priceFromEntry({
    input: '0.25',
    output: '1.00',
    cache_read: '0.025',
    over: { '200000': { input: '0.50', output: '1.5' } },
  })
  // What is not said costs as much as other input.
  const row = { input: '0.25', output: '1.00', cache_read: '0.025', cache_write: '0.25', cache_write_1h: '0.25' }
  const dear = { input: '0.50', output: '1.50', cache_read: '0.50', cache_write: '0.50', cache_write_1h: '0.50' }
  expect(showPrice(price)).toEqual({ ...row, over: { '200000': dear } })
})

test('free is a word', () => {
  expect(showPrice(priceFromEntry('free'))).toBe('free')
})
