/** @jsxImportSource preact */
// What the console's pages are made of: loading, error and empty states, tables, tiles, the chart, money, names, and code to
// copy.

import type { ComponentChildren } from 'preact'
import type { CatalogEntry } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/format.ts'
import { CopyButton, Status } from '../components.tsx'
import type { ApiError } from './api-client.ts'
import type { ListAnswer, RequestItem } from './api-types.ts'
import { useTimeFormats, useWorkspaces } from './context.tsx'
import { type Pages, type Query, useQuery } from './hooks.ts'
import { usdText } from './values.ts'

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
        <button type="button" class="button quiet small" onClick={retry}>
          Try again
        </button>
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

export function MoreButton({ label, pages }: { readonly label: string; readonly pages: Pages<unknown> }) {
  const { hasMore, isLoadingMore, moreError, loadMore } = pages
  return (
    <>
      {moreError && <ErrorNotice error={moreError} retry={loadMore} />}
      {hasMore && (
        <p>
          <button type="button" class="button quiet" disabled={isLoadingMore} onClick={loadMore}>
            {isLoadingMore ? 'Loading …' : label}
          </button>
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
      <header class="page-intro">
        <h1>{title}</h1>
        <p class="lede">{intro}</p>
      </header>
      {workspaces === undefined && <Loading what="workspaces" />}
      {workspaces !== undefined && !current && (
        <Empty title="Choose a workspace">
          <ul class="plain choices">
            {workspaces.map(({ id, name }) => (
              <li key={id}>
                <button type="button" class="button quiet" onClick={() => choose(id)}>
                  {name}
                </button>
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

export interface Column<Row> {
  readonly label: string
  /** Right-aligned. */
  readonly isNumber?: boolean
  /** Not wrapped where the table has room. */
  readonly isWhole?: boolean
  show(row: Row): ComponentChildren
}

export interface DataTableProps<Row> {
  /** For screen readers: what the table lists. */
  readonly caption: string
  /** The first one names the row. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** Makes the first column a link; undefined = no link. */
  hrefOf?(row: Row): string | undefined
}

/** A table. On a narrow screen every row is a card with each column's label above its value. */
export function DataTable<Row>({ caption, columns, rows, keyOf, hrefOf }: DataTableProps<Row>) {
  const [head, ...rest] = columns
  if (!head) return null
  return (
    <table class="data-table">
      <caption class="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ label, isNumber }) => (
            <th key={label} scope="col" class={isNumber ? 'number' : undefined}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} data-row={keyOf(row)}>
            <th scope="row" class={head.isWhole ? 'whole' : undefined}>
              <RowLink href={hrefOf?.(row)}>{head.show(row)}</RowLink>
            </th>
            {rest.map(({ label, isNumber, isWhole, show }) => (
              <td key={label} data-label={label} class={isNumber ? 'number' : isWhole ? 'whole' : undefined}>
                {show(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function RowLink({ href, children }: { readonly href: string | undefined; readonly children: ComponentChildren }) {
  if (href === undefined) return <>{children}</>
  return (
    <a class="row-link" href={href}>
      {children}
    </a>
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
export function NameOf({ kind, id }: { readonly kind: 'keys' | 'projects'; readonly id: string }) {
  const { value } = useQuery<{ readonly name: string }>(`/api/${kind}/${encodeURIComponent(id)}`)
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

export function CodeBlock({ code, what }: { readonly code: string; readonly what: string }) {
  return (
    <div class="code-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must be able to */}
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} what={what} label="Copy" />
    </div>
  )
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
  const { value } = useQuery<ListAnswer<CatalogEntry>>('/api/catalog')
  if (!value) return null
  const model = exampleModel(value.data)
  if (!model) return <p>No model can be called yet. Set a provider’s API key, or add a model to tollgate.yaml.</p>
  const body = { model: model.id, stream: true, messages: [{ role: 'user', content: 'hello' }] }
  return (
    <>
      <p>Set TOLLGATE_KEY to an API key (the first one is in the file first-key in the data folder), then run:</p>
      <CodeBlock code={curlText({ address, path: '/v1/chat/completions', auth: bearerAuth, body })} what="request" />
    </>
  )
}

/** A sandbox model if there is one, because it costs nothing real. */
export function exampleModel(models: readonly CatalogEntry[]): CatalogEntry | undefined {
  const callable = models.filter((model) => model.callable)
  const sandbox = callable.filter(({ routes }) => routes.some((route) => route.rehearsal))
  return sandbox.find(({ id }) => id.endsWith('/echo')) ?? sandbox[0] ?? callable[0]
}

export const bearerAuth = '-H "Authorization: Bearer $TOLLGATE_KEY"'

export interface CurlCall {
  readonly address: string
  readonly path: string
  /** Header options. */
  readonly auth: string
  readonly body: object
}

export function curlText({ address, path, auth, body }: CurlCall): string {
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
  const heightOf = (value: number) =>
    highest === 0 ? 0 : Math.max(value > 0 ? 1.5 : 0, (value / highest) * chartHeight)
  const bar = (name: string, at: number, value: number) => (
    <rect
      class={name}
      x={at * step + step * 0.12}
      y={chartHeight - heightOf(value)}
      width={step * 0.76}
      height={heightOf(value)}
    />
  )
  const peak = columns.find(({ value }) => value === highest)
  const first = columns[0]
  const last = columns.at(-1)
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
        <small>{first && when(first.start)}</small>
        <small>{last && when(last.start)}</small>
      </div>
      <details>
        <summary>Show as table</summary>
        <table class="chart-table">
          <caption class="visually-hidden">{title}</caption>
          <thead>
            <tr>
              <th scope="col">{`${unit === 'hour' ? 'Hour' : 'Day'} starting (${formats.zoneName})`}</th>
              <th scope="col">{title}</th>
              {partName !== undefined && <th scope="col">{partName}</th>}
            </tr>
          </thead>
          <tbody>
            {columns
              .filter(({ value }) => value > 0)
              .map(({ start, text, part = 0 }) => (
                <tr key={start}>
                  <th scope="row">{when(start)}</th>
                  <td>{text}</td>
                  {partName !== undefined && <td>{exactCount(part)}</td>}
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  )
}
