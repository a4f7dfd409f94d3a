import { expect, test } from 'bun:test'
import { drawBars, drawLines } from './plot.ts'

/** Widths of the drawn bars, in order. */
function widths(svg: string): number[] {
  return [...svg.matchAll(/<rect class="(?:ours|other)[^"]*" [^>]*width="([\d.]+)"/g)].map((match) => Number(match[1]))
}

test('draws ten times as much one step of the logarithmic scale further', () => {
  const bars = [10, 100, 1000].map((value) => ({ label: `l${value}`, values: [value], isOurs: value === 100 }))
  const [ten = 0, hundred = 0, thousand = 0] = widths(drawBars({ title: 't', unit: 'µs', values: ['CPU'], bars }))
  expect(hundred - ten).toBeCloseTo(thousand - hundred, 0)
  expect(ten).toBeGreaterThan(0)
})

test('leaves out the bar of what was not measured', () => {
  const bars = [
    { label: 'a', values: [10], isOurs: true },
    { label: 'b', values: [0], isOurs: false },
  ]
  expect(widths(drawBars({ title: 't', unit: 'µs', values: ['CPU'], bars }))[1]).toBe(0)
})

test('draws a flat curve flat and puts nothing at the left edge', () => {
  const points = [
    { x: 0, y: 1 },
    { x: 1000, y: 1 },
  ]
  const svg = drawLines({ title: 't', xUnit: 'rows', yUnit: '×', limit: 1.1, series: [{ name: 'rows', points }] })
  const heights = [...svg.matchAll(/cy="([\d.]+)" r="3"/g)].map((match) => match[1])
  expect(new Set(heights).size).toBe(1)
  expect(svg).toContain('cx="130" ')
})

test('escapes what would break the picture', () => {
  const bars = [{ label: 'a<b', values: [1, 2], isOurs: false }]
  expect(drawBars({ title: 'x & y', unit: 'ms', values: ['p50', 'p99'], bars })).toContain('a&lt;b')
})
