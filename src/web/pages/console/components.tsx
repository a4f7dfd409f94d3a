/** @jsxImportSource preact */
// What the console's pages are made of: loading, error and empty states, sections, tiles, the chart, money, names, and code
// to copy.

import type { ComponentChildren } from 'preact'
import { type CatalogEntry, isSandbox } from '../../catalog/entry.ts'
import { exactCount, usdText } from '../../catalog/format.ts'
import type { ApiError, RequestItem } from '../api.ts'
import { Button, CodeBlock, CopyButton, Status } from '../components.tsx'
import { type List, type Pages, type Query, useApi } from '../hooks.ts'
import { DataTable, type DataTableProps } from '../table.tsx'
import { useTimeFormats, useWorkspaces } from './context.tsx'

export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">Loading {what} …</span>
      <span class="skeleton" />
      <span class="skeleton" />
      <span class="skeleton" />
    </div>
  )
}

export function ErrorNotice({ error, retry }: { readonly error: ApiError; retry?(): void }) {
  return (
    <div class="warning" role="alert">
      <p>{error.message}</p>
      {error.requestId !== '' && (
        <p class="hint">
          Request id <code>{error.requestId}</code>
        </p>
      )}
      {retry && (
        <Button look="quiet small" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

export interface QueryViewProps<Value> {
  /** For screen readers: `keys` */
  readonly what: string
  readonly query: Query<Value>
  children(value: Value): ComponentChildren
}

/** Shows a query's value, that it loads, or why it failed. */
export function QueryView<Value>({ what, query, children }: QueryViewProps<Value>) {
  const { value, error, reload } = query
  return (
    <>
      {error && <ErrorNotice error={error} retry={reload} />}
      {value === undefined ? error === undefined && <Loading what={what} /> : children(value)}
    </>
  )
}

export interface ListViewProps<Item> extends Omit<DataTableProps<Item>, 'rows'> {
  /** For screen readers: `requests` */
  readonly what: string
  readonly moreLabel: string
  readonly list: List<Item>
  /** In place of an empty table. */
  readonly empty: ComponentChildren
}

/** Shows a list as a table, that it loads, that it is empty, or why it failed. */
export function ListView<Item>({ what, moreLabel, list, empty, ...table }: ListViewProps<Item>) {
  const { items, error, isLoading, reload } = list
  return (
    <>
      {error && <ErrorNotice error={error} retry={reload} />}
      {items.length > 0 ? <DataTable {...table} rows={items} /> : isLoading ? <Loading what={what} /> : !error && empty}
      <MoreButton label={moreLabel} pages={list} />
    </>
  )
}

export function MoreButton({ label, pages }: { readonly label: string; readonly pages: Pages<unknown> }) {
  const { hasMore, isLoadingMore, moreError, loadMore } = pages
  return (
    <>
      {moreError && <ErrorNotice error={moreError} retry={loadMore} />}
      {hasMore && (
        <p>
          <Button look="quiet" disabled={isLoadingMore} onClick={loadMore}>
            {isLoadingMore ? 'Loading …' : label}
          </Button>
        </p>
      )}
    </>
  )
}

/** In place of an empty list; the children say what to do next. */
export function Empty({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="empty-state">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

export interface SectionProps {
  readonly title: string
  /** Beside the title, smaller. */
  readonly note?: ComponentChildren
  /** At the end of the title's line. */
  readonly action?: ComponentChildren
  readonly isCard?: boolean
  readonly children: ComponentChildren
}

export function Section({ title, note, action, isCard = false, children }: SectionProps) {
  return (
    <section class={isCard ? 'card' : 'stack'} aria-label={title}>
      <div class="console-head">
        <h2>
          {title}
          {note !== undefined && <small> {note}</small>}
        </h2>
        {action}
      </div>
      {children}
    </section>
  )
}

export function Card(props: Omit<SectionProps, 'isCard'>) {
  return <Section {...props} isCard />
}

export function PageIntro({ title, intro }: { readonly title: string; readonly intro: string }) {
  return (
    <header class="page-intro">
      <h1>{title}</h1>
      <p class="lede">{intro}</p>
    </header>
  )
}

export interface WorkspacePageProps {
  readonly title: string
  readonly intro: string
  children(workspaceId: string): ComponentChildren
}

/** A page about one workspace: its heading, and a choice where all workspaces are selected. */
export function WorkspacePage({ title, intro, children }: WorkspacePageProps) {
  const { workspaces, current, choose } = useWorkspaces()
  return (
    <>
      <PageIntro title={title} intro={intro} />
      {workspaces === undefined && <Loading what="workspaces" />}
      {workspaces !== undefined && !current && (
        <Empty title="Choose a workspace">
          <ul class="plain choices">
            {workspaces.map(({ id, name }) => (
              <li key={id}>
                <Button look="quiet" onClick={() => choose(id)}>
                  {name}
                </Button>
              </li>
            ))}
          </ul>
        </Empty>
      )}
      {current && (
        <div class="stack" key={current.id}>
          {children(current.id)}
        </div>
      )}
    </>
  )
}

export interface TileProps {
  readonly label: string
  readonly value: ComponentChildren
  /** Its period, sample size or meaning. */
  readonly note?: ComponentChildren
  readonly href?: string
}

export function Tile({ label, value, note, href }: TileProps) {
  return (
    <div class="tile">
      <dt>{href === undefined ? label : <a href={href}>{label}</a>}</dt>
      <dd>
        <strong>{value}</strong>
        {note !== undefined && <small>{note}</small>}
      </dd>
    </div>
  )
}

/** An exact amount on one line; null = not known. */
export function Amount({ usd }: { readonly usd: string | null }) {
  if (usd === null) return <span class="muted">–</span>
  return <span class="amount">{usdText(usd)}</span>
}

/** The name of a key or project; its id until the name has loaded, and where there is none. */
export function NameOf({ kind, id }: { readonly kind: 'Key' | 'Project'; readonly id: string }) {
  const { value } = useApi(`get${kind}`, { id })
  return value === undefined ? <code>{id}</code> : <span title={id}>{value.name}</span>
}

/** How a request ended. Judged by its code, because a failed stream has status 200. */
export function Outcome({ request }: { readonly request: Pick<RequestItem, 'status' | 'code' | 'reason'> }) {
  const { status, code, reason } = request
  if (code === null) {
    const text = status === 499 ? '499 client disconnected' : String(status)
    return <Status level={status < 400 ? 'ok' : 'off'} text={text} />
  }
  const level = status >= 500 || status === 200 ? 'error' : 'warning'
  return <Status level={level} text={`${status} ${code.toLowerCase().replaceAll('_', ' ')}`} detail={reason ?? ''} />
}

export interface CopyFieldProps {
  readonly title: string
  /** For screen readers: `.env lines` */
  readonly what: string
  readonly text: string
}

/** A text to take away: shown whole, wrapped, with a button that copies it. */
export function CopyField({ title, what, text }: CopyFieldProps) {
  return (
    <div class="copy-field">
      <div class="copy-field-head">
        <h3>{title}</h3>
        <CopyButton text={text} what={what} label="Copy" />
      </div>
      <pre class="wrap" data-what={what}>
        {text}
      </pre>
    </div>
  )
}

/** A first request to run: this gateway's address and a callable model. The key stays in a variable. */
export function ExampleRequest({ address }: { readonly address: string }) {
  const { value } = useApi('getCatalog', {})
  if (!value) return null
  const model = exampleModel(value.data)
  if (!model) return <p>No model can be called yet. Set a provider’s API key, or add a model to tollgate.yaml.</p>
  return (
    <>
      <p>Set TOLLGATE_KEY to an API key (the first one is in the file first-key in the data folder), then run:</p>
      <CodeBlock code={curlText({ address, body: helloBody(model.id) })} what="request" />
    </>
  )
}

/** A sandbox model if there is one, because it costs nothing real. */
export function exampleModel(models: readonly CatalogEntry[]): CatalogEntry | undefined {
  const callable = models.filter((model) => model.callable)
  const sandbox = callable.filter(isSandbox)
  return sandbox.find(({ id }) => id.endsWith('/echo')) ?? sandbox[0] ?? callable[0]
}

export function helloBody(model: string) {
  return { model, stream: true, messages: [{ role: 'user', content: 'hello' }] }
}

export interface CurlCall {
  readonly address: string
  readonly path?: string
  /** Header options. */
  readonly auth?: string
  readonly body: object
}

const bearerAuth = '-H "Authorization: Bearer $TOLLGATE_KEY"'

export function curlText({ address, path = '/v1/chat/completions', auth = bearerAuth, body }: CurlCall): string {
  return `curl -N ${address}${path} \\
  ${auth} -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`
}

export interface ChartColumn {
  /** Epoch milliseconds. */
  readonly start: number
  readonly value: number
  /** A part of the value that is highlighted, such as errors. */
  readonly part?: number
  /** The exact value, as the table shows it. */
  readonly text: string
}

export interface ColumnChartProps {
  readonly title: string
  /** What the highlighted part is: `errors`. */
  readonly partName?: string
  readonly columns: readonly ChartColumn[]
  readonly unit: 'hour' | 'day'
}

const chartWidth = 600
const chartHeight = 120

/** Columns over time with the same figures as a table. SVG, because the page's policy allows no inline styles. */
export function ColumnChart({ title, partName, columns, unit }: ColumnChartProps) {
  const formats = useTimeFormats()
  const when = unit === 'hour' ? formats.hour : formats.day
  const highest = Math.max(...columns.map(({ value }) => value), 0)
  const step = chartWidth / Math.max(columns.length, 1)
  const bar = (name: string, at: number, value: number) => {
    const height = highest === 0 ? 0 : Math.max(value > 0 ? 1.5 : 0, (value / highest) * chartHeight)
    return (
      <rect class={name} x={at * step + step * 0.12} y={chartHeight - height} width={step * 0.76} height={height} />
    )
  }
  const peak = columns.find(({ value }) => value === highest)
  const ends = [columns[0], columns.at(-1)]
  const tableColumns = [
    {
      label: `${unit === 'hour' ? 'Hour' : 'Day'} starting (${formats.zoneName})`,
      show: ({ start }: ChartColumn) => when(start),
    },
    { label: title, isNumber: true, show: ({ text }: ChartColumn) => text },
    ...(partName === undefined
      ? []
      : [{ label: partName, isNumber: true, show: ({ part = 0 }: ChartColumn) => exactCount(part) }]),
  ]
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        {partName !== undefined && <small class="chart-legend">{partName}</small>}
        <small>{highest === 0 || !peak ? 'no data yet' : `peak ${peak.text}, ${when(peak.start)}`}</small>
      </figcaption>
      <svg viewBox={`0 0 ${chartWidth} ${chartHeight}`} preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <path class="chart-axis" d={`M0 ${chartHeight}H${chartWidth}`} />
        {columns.map(({ start, value, part = 0, text }, at) => (
          <g key={start}>
            <title>{`${when(start)}: ${text}`}</title>
            {bar('chart-all', at, value)}
            {part > 0 && bar('chart-part', at, part)}
          </g>
        ))}
      </svg>
      <div class="chart-ends" aria-hidden="true">
        {ends.map((end, at) => (
          <small key={at}>{end && when(end.start)}</small>
        ))}
      </div>
      <details>
        <summary>Show as table</summary>
        <DataTable
          class="compact-table"
          caption={title}
          columns={tableColumns}
          rows={columns.filter(({ value }) => value > 0)}
          keyOf={({ start }) => String(start)}
        />
      </details>
    </figure>
  )
}
