// Tables and texts for people: aligned by what a terminal shows, not by how many characters a text has. What comes from
// outside cannot move the cursor or colour the screen.

export interface Column {
  readonly title: string
  readonly align?: 'right'
}

const gap = '  '

/** Rows of texts below a head; the last column is not padded. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { color }: { readonly color: boolean },
): string {
  const cells = rows.map((row) => columns.map((_, at) => cleanText(row[at] ?? '')))
  const widths = columns.map(({ title }, at) =>
    Math.max(Bun.stringWidth(title), ...cells.map((row) => widthAt(row, at))),
  )
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) => padded(text, widths[at] ?? 0, columns[at]?.align))
      .join(gap)
      .trimEnd()
  const head = line(columns.map(({ title }) => title))
  return [color ? bold(head) : head, ...cells.map(line), ''].join('\n')
}

/** Names and values below each other, indented. */
export function renderFacts(facts: readonly (readonly [name: string, value: string | undefined])[]): string {
  const known = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  const width = Math.max(...known.map(([name]) => Bun.stringWidth(name)))
  return known.map(([name, value]) => `  ${padded(name, width, undefined)}  ${cleanText(value)}\n`).join('')
}

export function padded(text: string, width: number, align: 'right' | undefined): string {
  const space = ' '.repeat(Math.max(0, width - Bun.stringWidth(text)))
  return align === 'right' ? space + text : text + space
}

/** Control characters and those that turn the direction of writing become visible. */
export function cleanText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach the terminal
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd')
}

export function bold(text: string): string {
  return `\u001b[1m${text}\u001b[22m`
}

function widthAt(row: readonly string[], at: number): number {
  return Bun.stringWidth(row[at] ?? '')
}
