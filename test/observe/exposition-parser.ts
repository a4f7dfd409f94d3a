// Reads a page of metrics as a scraper would, written from the description of the format and sharing nothing with the
// code that writes it. Throws on what a scraper would refuse.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface ParsedFamily {
  readonly type: string
  readonly help: string
  readonly samples: Sample[]
}

const suffixes: Record<string, readonly string[]> = {
  histogram: ['_bucket', '_sum', '_count'],
  counter: ['', '_total'],
  gauge: [''],
}

export function parseExposition(page: string): Map<string, ParsedFamily> {
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>()
  const seen = new Set<string>()
  let current = ''
  if (!page.endsWith('\n')) throw new Error('the last line has no end')
  for (const line of page.slice(0, -1).split('\n')) {
    if (line === '# EOF') continue
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line)
    if (comment) {
      const [, kind, name = '', rest = ''] = comment
      if (kind === 'HELP' && families.has(name)) throw new Error(`${name} comes twice`)
      const family = families.get(name) ?? { type: '', help: '', samples: [] }
      if (kind === 'HELP') family.help = rest
      else family.type = rest
      families.set(name, family)
      current = name
      continue
    }
    const sample = parseSample(line)
    const family = families.get(current)
    const belongs = suffixes[family?.type ?? '']?.some((suffix) => `${current}${suffix}` === sample.name)
    if (!family || !belongs) throw new Error(`${sample.name} stands under ${current}`)
    const identity = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
    if (seen.has(identity)) throw new Error(`the same series twice: ${identity}`)
    seen.add(identity)
    family.samples.push(sample)
  }
  return families
}

function parseSample(line: string): Sample {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0]
  if (name === undefined) throw new Error(`no name: ${line}`)
  const labels: Record<string, string> = {}
  let at = name.length
  if (line[at] === '{') {
    at++
    while (line[at] !== '}') {
      const label = /^[a-zA-Z_][a-zA-Z0-9_]*(?==")/.exec(line.slice(at))?.[0]
      if (label === undefined || label in labels) throw new Error(`bad label at ${at}: ${line}`)
      at += label.length + 2
      let value = ''
      while (line[at] !== '"') {
        if (line[at] === undefined) throw new Error(`a value without an end: ${line}`)
        if (line[at] === '\\') {
          at++
          const meant = ({ n: '\n', '"': '"', '\\': '\\' } as Record<string, string>)[line[at] ?? '']
          if (meant === undefined) throw new Error(`bad escape: ${line}`)
          value += meant
        } else value += line[at]
        at++
      }
      labels[label] = value
      at++
      if (line[at] === ',') at++
      else if (line[at] !== '}') throw new Error(`bad list of labels: ${line}`)
    }
    at++
  }
  const text = /^ (\S+)$/.exec(line.slice(at))?.[1]
  if (text === undefined) throw new Error(`no value: ${line}`)
  const value = text === '+Inf' ? Number.POSITIVE_INFINITY : Number(text)
  if (Number.isNaN(value) && text !== 'NaN') throw new Error(`no number: ${line}`)
  return { name, labels, value }
}

/** The value of the one sample with these labels, undefined without one. */
export function sampleValue(
  families: ReadonlyMap<string, ParsedFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  for (const { samples } of families.values()) {
    for (const sample of samples) {
      if (sample.name === name && Bun.deepEquals(sample.labels, labels)) return sample.value
    }
  }
  return undefined
}
