/** @jsxImportSource preact */
// What the console's pages are made of: queries and lists, sections, tiles, actions, names, and the example
// request.

import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type CatalogEntry, isEmbedder, isSandbox } from '../../catalog/entry.ts'
import { exactCount } from '../../catalog/format.ts'
import type { CallOf, RequestItem } from '../api.ts'
import { Button, CodeBlock, ErrorNotice, Menu, Skeleton, Status } from '../components.tsx'
import { idOf, type List, type Query, useApi, useTimeout } from '../hooks.ts'
import { Icon } from '../icons.tsx'
import { type Column, DataTable, type DataTableProps } from '../table.tsx'

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
      {value === undefined ? error === undefined && <Skeleton what={what} /> : children(value)}
    </>
  )
}

export interface LongReadProps {
  readonly query: Query<unknown>
  /** The parameters of the report; undefined = nothing is read yet. */
  readonly estimate: CallOf<'estimateReport'>['query'] | undefined
}

const longSeconds = 2
const lateMs = 500

/** While a report reads the rows of the log: how long that takes, and a button that ends it. */
export function LongRead({ query: { isLoading, cancel }, estimate }: LongReadProps) {
  const [isLate, setLate] = useState(false)
  useEffect(() => setLate(false), [isLoading])
  // Most reports are there before one could ask.
  useTimeout(() => setLate(true), isLoading ? lateMs : undefined)
  const call = isLoading && isLate && estimate ? { query: estimate } : undefined
  const { value } = useApi('estimateReport', call)
  if (!call || !value || value.seconds < longSeconds) return null
  return (
    <p class="row" role="status">
      <span>
        Reading {exactCount(value.rows)} requests from the log: about {exactCount(Math.round(value.seconds))} s.
      </span>
      <Button look="quiet small" onClick={cancel}>
        Cancel
      </Button>
    </p>
  )
}

export interface ListViewProps<Item> extends Omit<DataTableProps<Item>, 'rows' | 'keyOf'> {
  /** For screen readers: `requests` */
  readonly what: string
  readonly list: List<Item>
  /** Absent = the item's id. */
  keyOf?(item: Item): string
}

/** Shows a list as a table, that it loads, that it is empty, or why it failed; and a button for older items. */
export function ListView<Item>({ what, list, keyOf = idOf, ...table }: ListViewProps<Item>) {
  const { items, error, isLoading, reload, hasMore, isLoadingMore, moreError, loadMore } = list
  return (
    <>
      {error && <ErrorNotice error={error} retry={reload} />}
      {items.length === 0 && isLoading && <Skeleton what={what} />}
      {(items.length > 0 || !(isLoading || error)) && <DataTable {...table} keyOf={keyOf} rows={items} />}
      {moreError && <ErrorNotice error={moreError} retry={loadMore} />}
      {hasMore && (
        <p>
          <Button look="quiet" disabled={isLoadingMore} onClick={loadMore}>
            {isLoadingMore ? 'Loading …' : `Show older ${what}`}
          </Button>
        </p>
      )}
    </>
  )
}

export interface LongTableProps<Row> extends DataTableProps<Row> {
  /** `models` */
  readonly what: string
  /** How many rows it starts with, and how many more each time. */
  readonly listed?: number
}

/** A table that starts with a part of its rows, so that it opens at once, and a button for more. */
export function LongTable<Row>({ what, listed: step = 50, rows, ...table }: LongTableProps<Row>) {
  const [listed, setListed] = useState(step)
  return (
    <>
      <DataTable {...table} rows={rows.slice(0, listed)} />
      {rows.length > listed && (
        <p>
          <Button look="quiet" onClick={() => setListed(listed + step)}>
            Show more of {exactCount(rows.length)} {what}
          </Button>
        </p>
      )}
    </>
  )
}

/** Whether a text has all the words that are searched for. */
export function hasWords(text: string, query: string): boolean {
  const written = text.toLowerCase()
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => written.includes(word))
}

/** In place of an empty list; the content says what to do next. */
export function emptyState(title: string, content: ComponentChildren) {
  return (
    <section class="empty stack tight">
      <h2>{title}</h2>
      {typeof content === 'string' ? <p class="muted">{content}</p> : content}
    </section>
  )
}

export interface SectionProps {
  readonly title: string
  /** Beside the title, smaller. */
  readonly note?: ComponentChildren
  /** At the end of the title's line: a button, or anything else. */
  readonly action?: Omit<Action, 'name'> | VNode | false
  readonly isCard?: boolean
  readonly children: ComponentChildren
}

export function Section({ title, note, action, isCard = false, children }: SectionProps) {
  return (
    <section class={isCard ? 'card stack' : 'stack'} aria-label={title}>
      <div class="between">
        <h2>
          {title} {note !== undefined && <small>{note}</small>}
        </h2>
        {action && ('run' in action ? <Actions actions={[{ ...action, name: action.label }]} /> : action)}
      </div>
      {children}
    </section>
  )
}

export interface ListSectionProps<Item> extends ListViewProps<Item>, Pick<SectionProps, 'title' | 'action'> {
  /** Above the list. */
  readonly children?: ComponentChildren
}

export function ListSection<Item>({ title, action, children, ...list }: ListSectionProps<Item>) {
  return (
    <Section title={title} action={action ?? false}>
      {children}
      <ListView {...list} />
    </Section>
  )
}

export interface DetailHeadProps {
  /** The pages above it: label and address. */
  readonly trail: readonly (readonly [label: string, href: string])[]
  readonly title: string
  /** At the end of the title's line. */
  readonly action?: ComponentChildren
  readonly children?: ComponentChildren
}

/** The head of a page about one thing. */
export function DetailHead({ trail, title, action, children }: DetailHeadProps) {
  return (
    <header class="stack tight">
      <p class="breadcrumbs">
        {trail.map(([label, href], at) => (
          <span key={href}>
            {at > 0 && ' / '}
            <a href={href}>{label}</a>
          </span>
        ))}
      </p>
      <div class="between">
        <h1>{title}</h1>
        {action}
      </div>
      {children}
    </header>
  )
}

export function Card(props: Omit<SectionProps, 'isCard'>) {
  return <Section {...props} isCard />
}

export interface Action {
  readonly label: string
  /** For screen readers, since other rows have the same label: `Revoke ci`. */
  readonly name: string
  readonly look?: 'primary' | 'danger'
  run(): void
}

const looks = { primary: 'small', danger: 'quiet small revoke' } as const

/** The buttons of a row. */
export function Actions({ actions }: { readonly actions: readonly Action[] }) {
  return actions.map(({ label, name, look, run }) => (
    <Button key={label} look={look ? looks[look] : 'quiet small'} aria-label={name} onClick={run}>
      {label}
    </Button>
  ))
}

/** The last column of a table. */
export function actionsColumn<Row>(actionsOf: (row: Row) => readonly Action[]): Column<Row> {
  return { label: 'Actions', show: (row) => <Actions actions={actionsOf(row)} /> }
}

/** The actions of a row behind "⋯". */
export function RowMenu({ name, actions }: { readonly name: string; readonly actions: readonly Action[] }) {
  if (actions.length === 0) return null
  const items = actions.map(({ label, look, run }) => ({ label, run, isDanger: look === 'danger' }))
  return <Menu name={`Actions for ${name}`} items={items} />
}

export interface Tile {
  readonly label: string
  readonly value: ComponentChildren
  /** Its period, sample size or meaning. */
  readonly note?: ComponentChildren
  readonly href?: string
}

export function Tiles({ tiles }: { readonly tiles: readonly Tile[] }) {
  return (
    <dl class="tiles">
      {tiles.map(({ label, value, note, href }) => (
        <div key={label} class="tile card">
          <dt>{href === undefined ? label : <a href={href}>{label}</a>}</dt>
          <dd>
            <strong>{value}</strong>
            {note !== undefined && <small class="note">{note}</small>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** The filters of a list; on a phone behind a button. */
export function FilterFold({ children }: { readonly children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="button quiet on-phone" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="filter" size={14} />
        Filter
      </button>
      <div class={isOpen ? 'stack' : 'stack folded'}>{children}</div>
    </>
  )
}

/** The name of a key or project; its id where there is none, and the end of it until the name has loaded. */
export function NameOf({ kind, id }: { readonly kind: 'Key' | 'Project'; readonly id: string }) {
  const { value, error } = useApi(`get${kind}`, { id })
  if (value === undefined) return <code>{error ? id : `…${id.slice(-6)}`}</code>
  return <span title={id}>{value.name}</span>
}

const causeTexts: Readonly<Record<string, string>> = {
  ok: 'succeeded',
  model_not_allowed: 'not allowed for this key',
  no_route: 'no route available',
  routes_failed: 'every route failed',
  provider_throttled: 'provider rate limit',
  provider_refused: 'refused by provider',
  spend_limit: 'spend limit reached',
  limit_exceeded: 'rate limit',
  stream_interrupted: 'interrupted',
  insufficient_balance: 'insufficient balance',
}

/** The cause of a failure in words. */
export function causeText(cause: string): string {
  return causeTexts[cause] ?? cause.replaceAll('_', ' ')
}

/** Nobody could have been served: no provider, or not this gateway. */
const totalFailures: ReadonlySet<string> = new Set([
  ...['no_route', 'routes_failed', 'provider_throttled', 'unavailable', 'overloaded', 'internal'],
])

/** `warning`: the request was refused, or its answer was interrupted. */
export function causeLevel(cause: string): 'ok' | 'warning' | 'error' {
  return cause === 'ok' ? 'ok' : totalFailures.has(cause) ? 'error' : 'warning'
}

type Ending = Pick<RequestItem, 'status' | 'cause' | 'reason'>

/** Judged by its cause, because a failed stream has status 200. */
export function outcomeLevel({ status, cause }: Pick<Ending, 'status' | 'cause'>) {
  return cause === null && status >= 400 ? 'off' : causeLevel(cause ?? 'ok')
}

/** What is there to say besides the status; empty = it succeeded. */
export function outcomeText({ status, cause }: Pick<Ending, 'status' | 'cause'>): string {
  return cause === null ? (status === 499 ? 'client disconnected' : '') : causeText(cause)
}

/** How a request ended. */
export function Outcome(request: Ending) {
  const text = `${request.status} ${outcomeText(request)}`.trimEnd()
  return <Status level={outcomeLevel(request)} text={text} detail={request.reason ?? ''} />
}

/** A first request to run: this gateway's address and a callable model. The key stays in a variable. */
export function ExampleRequest({ address, isOperator }: { readonly address: string; readonly isOperator: boolean }) {
  const { value } = useApi('getCatalog', {})
  if (!value) return null
  const model = exampleModel(value.data)
  if (!model) return <p>No model can be called yet. Add a provider under Providers & routes.</p>
  return (
    <>
      <p>
        Set TOLLGATE_KEY to an API key
        {isOperator && ' (the first one is in the file first-key in the data folder)'}, then run:
      </p>
      <CodeBlock code={curlText(address, helloBody(model.id))} what="request" />
    </>
  )
}

/** A sandbox model if there is one, because it costs nothing real. */
export function exampleModel(models: readonly CatalogEntry[]): CatalogEntry | undefined {
  const callable = models.filter((model) => model.callable && !isEmbedder(model))
  const sandbox = callable.filter(isSandbox)
  return sandbox.find(({ id }) => id.endsWith('/echo')) ?? sandbox[0] ?? callable[0]
}

export function helloBody(model: string) {
  return { model, stream: true, messages: [{ role: 'user', content: 'hello' }] }
}

/** `auth` is curl's header options. */
export function curlText(
  address: string,
  body: object,
  { path = '/v1/chat/completions', auth = '-H "Authorization: Bearer $TOLLGATE_KEY"' } = {},
): string {
  return `curl -N ${address}${path} \\
  ${auth} -H "Content-Type: application/json" \\
  -d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`
}

/** Has the browser save a text as a CSV file. */
export function saveFile(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
