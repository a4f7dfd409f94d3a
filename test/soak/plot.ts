// Memory over the time of a soak as a picture: every sample, the line through those that count, and what was measured.

import type { Line, Point } from './slope.ts'

export interface Plot {
  readonly title: string
  /** Bytes. */
  readonly rss: readonly Point[]
  readonly heap: readonly Point[]
  readonly warmUpSeconds: number
  readonly line: Line | undefined
}

const width = 900
const height = 420
const frame = { left: 64, right: 24, top: 48, bottom: 44 }
const mebibyte = 1024 * 1024

export function renderPlot({ title, rss, heap, warmUpSeconds, line }: Plot): string {
  const lastSecond = Math.max(1, ...rss.map(({ second }) => second))
  const highest = Math.max(1, ...rss.map(({ value }) => value), ...heap.map(({ value }) => value)) / mebibyte
  const step = stepFor(highest)
  const top = Math.ceil(highest / step) * step
  const x = (second: number) => frame.left + (second / lastSecond) * (width - frame.left - frame.right)
  const y = (bytes: number) => height - frame.bottom - (bytes / mebibyte / top) * (height - frame.top - frame.bottom)
  const path = (points: readonly Point[]) =>
    points.map(({ second, value }) => `${x(second).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
  const rows = Array.from({ length: Math.round(top / step) + 1 }, (_, at) => at * step)
  const minuteStep = stepFor(lastSecond / 60)
  const minutes = Array.from({ length: Math.floor(lastSecond / 60 / minuteStep) + 1 }, (_, at) => at * minuteStep)
  const parts = [
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<rect x="${frame.left}" y="${frame.top}" width="${(x(Math.min(warmUpSeconds, lastSecond)) - frame.left).toFixed(1)}" height="${height - frame.top - frame.bottom}" fill="#f2f2f2"/>`,
    text(frame.left, 24, title, 'start', 14),
    ...rows.flatMap((row) => [
      `<path d="M${frame.left} ${y(row * mebibyte).toFixed(1)}H${width - frame.right}" stroke="#ddd"/>`,
      text(frame.left - 8, y(row * mebibyte) + 4, `${row} MiB`, 'end'),
    ]),
    ...minutes.map((minute) => text(x(minute * 60), height - frame.bottom + 18, `${minute} min`, 'middle')),
    `<polyline points="${path(rss)}" fill="none" stroke="#1f5fbf" stroke-width="1.5"/>`,
    `<polyline points="${path(heap)}" fill="none" stroke="#c2691b" stroke-width="1.5"/>`,
    text(
      width - frame.right,
      frame.top - 8,
      'blue: resident memory · orange: heap · dashed: resident memory at rest · grey: warm-up',
      'end',
    ),
  ]
  if (line) {
    const ends = [warmUpSeconds, lastSecond].map((second) => ({
      second,
      value: line.start + (line.perHour / 3600) * second,
    }))
    parts.push(`<polyline points="${path(ends)}" fill="none" stroke="#b00020" stroke-dasharray="6 4"/>`)
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif">\n${parts.join('\n')}\n</svg>\n`
}

/** 1, 2 or 5 times a power of ten, so that some five of them reach the top. */
function stepFor(top: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(top, 1) / 5))
  return [1, 2, 5, 10].map((times) => times * power).find((step) => top / step <= 6) ?? power * 10
}

function text(x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end', size = 11): string {
  const safe = words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-size="${size}" text-anchor="${anchor}" fill="#333">${safe}</text>`
}
