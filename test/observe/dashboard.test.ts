import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openGatewayMetrics } from './gateway-page.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat?: string }[]
}

interface Variable {
  readonly name: string
  readonly type: string
  readonly query?: string | { readonly query: string }
}

const dashboard: { readonly panels: readonly Panel[]; readonly templating: { readonly list: readonly Variable[] } } =
  await Bun.file(join(import.meta.dir, '../../docs/operate/grafana-dashboard.json')).json()

/** Names that a query may use: of a histogram only the three it is stored as. */
const realLabels = new Map<string, readonly string[]>()
for (const { name, labels, type } of await openGatewayMetrics().registry.read()) {
  if (type === 'histogram') {
    realLabels.set(`${name}_bucket`, [...labels, 'le'])
    realLabels.set(`${name}_sum`, labels)
    realLabels.set(`${name}_count`, labels)
  } else realLabels.set(name, labels)
}

/** Labels that Prometheus adds itself. */
const added = ['instance', 'job']

const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
const variableQueries = dashboard.templating.list.flatMap(({ name, query }) => {
  const text = typeof query === 'string' ? query : query?.query
  return text?.includes('label_values') ? [{ title: `variable ${name}`, expr: text }] : []
})

const metricsIn = (expr: string) => [...new Set(expr.match(/\b(tollgate|process)_[a-z0-9_]+/g) ?? [])]

test('every query uses existing metrics', () => {
  expect(queries.length).toBeGreaterThan(10)
  for (const { title, expr } of [...queries, ...variableQueries]) {
    const names = metricsIn(expr)
    expect([title, names.length > 0]).toEqual([title, true])
    expect([title, names.filter((name) => !realLabels.has(name))]).toEqual([title, []])
  }
})

test('every label in a query is a label of its metric', () => {
  for (const { title, expr } of queries) {
    const known = new Set([...added, ...metricsIn(expr).flatMap((name) => realLabels.get(name) ?? [])])
    const grouped = [...expr.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, list = '']) =>
      list.split(','),
    )
    const matched = [...expr.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = '']) => label)
    const used = [...grouped, ...matched].map((label) => label.trim()).filter((label) => label !== '')
    expect([title, used.filter((label) => !known.has(label))]).toEqual([title, []])
  }
})

test('legends and variables are defined', () => {
  for (const { title, targets = [] } of dashboard.panels) {
    for (const { expr, legendFormat = '' } of targets) {
      const shown = [...legendFormat.matchAll(/\{\{([a-z_]+)\}\}/g)].map(([, label = '']) => label)
      const grouped =
        /\bby\s*\(([^)]*)\)/
          .exec(expr)?.[1]
          ?.split(',')
          .map((label) => label.trim()) ?? []
      expect([title, shown.filter((label) => !grouped.includes(label))]).toEqual([title, []])
    }
  }
  const defined = new Set(dashboard.templating.list.map(({ name }) => name))
  for (const { title, expr } of queries) {
    const named = [...expr.matchAll(/\$([a-z]+)/g)].map(([, name = '']) => name)
    expect([title, named.filter((name) => !defined.has(name))]).toEqual([title, []])
  }
})

test('counters are queried as rates, and brackets are balanced', () => {
  for (const { title, expr } of queries) {
    for (const name of metricsIn(expr).filter((each) => each.endsWith('_total') || each.endsWith('_bucket'))) {
      const asked = new RegExp(`\\b(rate|increase)\\(${name}(\\{[^}]*\\})?\\[`).test(expr)
      expect([title, name, asked]).toEqual([title, name, true])
    }
    for (const [open, close] of ['()', '{}', '[]']) {
      expect([title, expr.split(open ?? '').length]).toEqual([title, expr.split(close ?? '').length])
    }
  }
})

test('all panels exist and none overlaps another', () => {
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  expect(rows).toEqual([
    'Traffic and errors',
    'TTFT and overhead',
    'Spend by project',
    'Wallet and holds',
    'Route health',
    'Limits',
    'Process',
  ])
  const taken = new Set<string>()
  const ids = new Set<number>()
  for (const { id, title, gridPos } of dashboard.panels) {
    expect([title, ids.has(id)]).toEqual([title, false])
    ids.add(id)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([title, x < 24 && !taken.has(`${x} ${y}`)]).toEqual([title, true])
        taken.add(`${x} ${y}`)
      }
    }
  }
})
