/** @jsxImportSource preact */
// A table of the console. On a narrow screen every row is a card with the name of a column before its value.

import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly label: string
  /** Numbers stand to the right, under each other. */
  readonly isNumber?: boolean
  /** Short, and not broken into lines where the table has room. */
  readonly isWhole?: boolean
  show(row: Row): ComponentChildren
}

export interface DataTableProps<Row> {
  /** For who cannot see the table: what it lists. */
  readonly caption: string
  /** The first one names the row. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  keyOf(row: Row): string
  /** Where a row leads; its first column becomes the link. undefined = nowhere. */
  hrefOf?(row: Row): string | undefined
}

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
