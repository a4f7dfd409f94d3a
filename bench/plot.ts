// Draws the plots: horizontal bars on a logarithmic scale, and lines over a logarithmic axis. Plain SVG with its own ground
// and a style for dark pages, so that it can be read wherever a README is shown.

export interface Bars {
  readonly title: string
  readonly unit: string
  /** Names of the values of each bar: `CPU`, or `p50` and `p99`. */
  readonly values: readonly string[]
  readonly bars: readonly { readonly label: string; readonly values: readonly number[]; readonly isOurs: boolean }[]
}

export interface Lines {
  readonly title: string
  readonly xUnit: string
  readonly yUnit: string
  /** Drawn across as the line not to be crossed. */
  readonly limit?: number
  readonly series: readonly { readonly name: string; readonly points: readonly { x: number; y: number }[] }[]
}

const WIDTH = 760
const LEFT = 130
const RIGHT = 130
const TOP = 58
const SPAN = WIDTH - LEFT - RIGHT

const STYLE = `<style>
text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.quiet{fill:#59636e;font-size:12px}
.ground{fill:#fff}.grid{stroke:#d1d9e0;stroke-width:1}.limit{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:5 4}
.other{fill:#8c959f}.ours{fill:#0969da}.second{opacity:.45}.ours-name{font-weight:600}
.s0{stroke:#0969da;fill:#0969da}.s1{stroke:#bc4c00;fill:#bc4c00}.s2{stroke:#1a7f37;fill:#1a7f37}.s3{stroke:#8250df;fill:#8250df}
.s4{stroke:#bf3989;fill:#bf3989}.s5{stroke:#59636e;fill:#59636e}path.line{fill:none;stroke-width:2}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}.ground{fill:#0d1117}.grid{stroke:#3d444d}
.limit{stroke:#f85149}.other{fill:#656c76}.ours{fill:#4493f8}.s0{stroke:#4493f8;fill:#4493f8}.s1{stroke:#f0883e;fill:#f0883e}
.s2{stroke:#3fb950;fill:#3fb950}.s3{stroke:#ab7df8;fill:#ab7df8}.s4{stroke:#db61a2;fill:#db61a2}.s5{stroke:#9198a1;fill:#9198a1}}
</style>`

export function drawBars({ title, unit, values, bars }: Bars): string {
  const all = bars.flatMap((bar) => bar.values).filter((value) => value > 0)
  const scale = logScale(Math.min(...all) / 1.5, Math.max(...all), SPAN)
  const thickness = values.length > 1 ? 11 : 18
  const rowHeight = thickness * values.length + 12
  const height = TOP + bars.length * rowHeight + 34
  const grid = powersOfTen(scale.from, scale.to).map((power) => {
    const x = LEFT + scale.at(power)
    return `${line(x, TOP - 4, x, height - 26, 'grid')}${text(x, height - 10, plain(power), 'quiet', 'middle')}`
  })
  const rows = bars.map((bar, at) => {
    const y = TOP + at * rowHeight
    const name = text(LEFT - 10, y + rowHeight / 2, bar.label, bar.isOurs ? 'ours-name' : '', 'end')
    const marks = bar.values.map((value, nth) => {
      const top = y + 4 + nth * thickness
      const width = value > 0 ? Math.max(1, scale.at(value)) : 0
      const style = `${bar.isOurs ? 'ours' : 'other'}${nth > 0 ? ' second' : ''}`
      return (
        `<rect class="${style}" x="${LEFT}" y="${round(top)}" width="${round(width)}" height="${thickness - 1}" rx="2"/>` +
        text(LEFT + width + 6, top + thickness / 2 + 4, plain(value), 'quiet')
      )
    })
    return name + marks.join('')
  })
  const subtitle = values.length > 1 ? `${unit}; ${values.join(' above ')}; logarithmic` : `${unit}, logarithmic`
  return document(height, title, subtitle, [...grid, ...rows])
}

export function drawLines({ title, xUnit, yUnit, limit, series }: Lines): string {
  const points = series.flatMap((one) => one.points)
  const xs = points.map(({ x }) => Math.max(1, x))
  const scale = logScale(Math.min(...xs), Math.max(...xs), SPAN)
  const top = niceTop(Math.max(...points.map(({ y }) => y), limit ?? 0))
  const plotHeight = 240
  const height = TOP + plotHeight + 44
  const yAt = (value: number) => TOP + plotHeight - (value / top) * plotHeight
  const xAt = (value: number) => LEFT + scale.at(Math.max(1, value))
  const levels = [0, 1, 2, 3, 4].map((step) => (top * step) / 4)
  const grid = [
    ...levels.map(
      (level) =>
        line(LEFT, yAt(level), LEFT + SPAN, yAt(level), 'grid') +
        text(LEFT - 10, yAt(level) + 4, plain(level), 'quiet', 'end'),
    ),
    ...powersOfTen(scale.from, scale.to).map((power) => text(xAt(power), height - 24, plain(power), 'quiet', 'middle')),
    text(LEFT + SPAN / 2, height - 7, xUnit, 'quiet', 'middle'),
    limit === undefined ? '' : line(LEFT, yAt(limit), LEFT + SPAN, yAt(limit), 'limit'),
  ]
  const drawn = series.map(({ name, points: own }, at) => {
    const path = own.map(({ x, y }, nth) => `${nth === 0 ? 'M' : 'L'}${round(xAt(x))} ${round(yAt(y))}`).join('')
    const dots = own.map(({ x, y }) => `<circle class="s${at % 6}" cx="${round(xAt(x))}" cy="${round(yAt(y))}" r="3"/>`)
    const key = `<circle class="s${at % 6}" cx="${LEFT + SPAN + 14}" cy="${TOP + 8 + at * 20}" r="4"/>`
    return `<path class="line s${at % 6}" d="${path}"/>${dots.join('')}${key}${text(LEFT + SPAN + 23, TOP + 12 + at * 20, name, 'quiet')}`
  })
  return document(height, title, yUnit, [...grid, ...drawn])
}

function document(height: number, title: string, subtitle: string, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${round(height)}" role="img" aria-label="${escaped(title)}">
${STYLE}
<rect class="ground" width="${WIDTH}" height="${round(height)}" rx="6"/>
${text(16, 24, title, 'title')}${text(16, 42, subtitle, 'quiet')}
${parts.filter((part) => part !== '').join('\n')}
</svg>
`
}

interface Scale {
  readonly from: number
  readonly to: number
  at(value: number): number
}

function logScale(from: number, to: number, span: number): Scale {
  const width = Math.log10(to / from) || 1
  return { from, to, at: (value) => (Math.log10(value / from) / width) * span }
}

function powersOfTen(from: number, to: number): number[] {
  const powers: number[] = []
  for (let exponent = Math.ceil(Math.log10(from)); 10 ** exponent <= to; exponent++) powers.push(10 ** exponent)
  return powers
}

/** The next of 1, 2, 4, 6, 8, 10 times a power of ten. */
function niceTop(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most))
  return (([1, 2, 4, 6, 8].find((step) => step * power >= most) ?? 10) * power) as number
}

function line(x1: number, y1: number, x2: number, y2: number, style: string): string {
  return `<line class="${style}" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`
}

function text(x: number, y: number, content: string, style: string, anchor = 'start'): string {
  return `<text class="${style}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escaped(content)}</text>`
}

function plain(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(value >= 1 ? 3 : 2)))
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(content: string): string {
  return content.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;')
}
