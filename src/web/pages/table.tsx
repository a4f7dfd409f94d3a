/** @jsxImportSource preact */
// The table of all pages. On a narrow screen every row is a card with each column's label above its value.

import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly label: string
  /** In the head instead of the label. */
  readonly head?: ComponentChildren
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
  /** Absent = `data-table`. */
  readonly class?: string
  keyOf(row: Row): string
  /** Makes the first column a link; undefined = no link. */
  hrefOf?(row: Row): string | undefined
  /** Rows of a group follow each other under its name; an empty name has no heading. */
  groupOf?(row: Row): string
  /** Rows that matter less. */
  isDim?(row: Row): boolean
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rows, keyOf, hrefOf, groupOf = () => '', isDim } = props
  const [head, ...rest] = columns
  if (!head) return null
  return (
    <table class={props.class ?? 'data-table'}>
      <caption class="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.label} scope="col" class={cellClass(column)}>
              {column.head ?? column.label}
            </th>
          ))}
        </tr>
      </thead>
      {[...Map.groupBy(rows, groupOf)].map(([group, members]) => (
        <tbody key={group}>
          {group !== '' && (
            <tr class="group">
              <th scope="rowgroup" colSpan={columns.length}>
                {group}
              </th>
            </tr>
          )}
          {members.map((row) => (
            <tr key={keyOf(row)} data-row={keyOf(row)} class={isDim?.(row) ? 'dim' : undefined}>
              <th scope="row" class={cellClass(head)}>
                <RowLink href={hrefOf?.(row)}>{head.show(row)}</RowLink>
              </th>
              {rest.map((column) => (
                <td key={column.label} data-label={column.label} class={cellClass(column)}>
                  {column.show(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  )
}

function cellClass<Row>({ isNumber, isWhole }: Column<Row>): string | undefined {
  return isNumber ? 'number' : isWhole ? 'whole' : undefined
}

function RowLink({ href, children }: { readonly href: string | undefined; readonly children: ComponentChildren }) {
  if (href === undefined) return <>{children}</>
  return (
    <a class="row-link" href={href}>
      {children}
    </a>
  )
}
