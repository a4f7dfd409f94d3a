/** @jsxImportSource preact */
// The table of all pages. On a narrow screen every row is a card with each column's label above its value, on a phone
// beside it.

import type { ComponentChildren } from 'preact'
import { amountText, decimalsOf, usdText } from '../catalog/format.ts'
import { Amount, type AmountProps } from './components.tsx'

export interface Column<Row> {
  readonly label: string
  /** In the head instead of the label. */
  readonly head?: ComponentChildren
  /** The rows are sorted by this column. */
  readonly sorted?: 'ascending' | 'descending' | undefined
  /** Right-aligned. */
  readonly isNumber?: boolean
  /** Not wrapped where the table has room. */
  readonly isWhole?: boolean
  /** Digits after the point that the row's amount shows; the column's most are passed to `show`. */
  decimals?(row: Row): number
  show(row: Row, decimals?: number): ComponentChildren
  /** Below the value, smaller; nothing if it is empty. */
  note?(row: Row): ComponentChildren
}

type AmountColumn<Row> = Omit<Column<Row>, 'show' | 'decimals'> & Pick<AmountProps, 'isExact'>

/** A column of amounts whose decimal points line up. */
export function amountColumn<Row>(
  label: string,
  usdOf: (row: Row) => string | null,
  { isExact = false, ...more }: Partial<AmountColumn<Row>> = {},
): Column<Row> {
  return {
    label,
    isNumber: true,
    decimals: (row) => decimalsOf((isExact ? usdText : amountText)(usdOf(row) ?? '')),
    show: (row, decimals) => <Amount usd={usdOf(row)} isExact={isExact} decimals={decimals} />,
    ...more,
  }
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
  /** Rows that matter less. */
  isDim?(row: Row): boolean
  /** In place of a table without rows. */
  readonly empty?: ComponentChildren
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rows, keyOf, hrefOf, isDim } = props
  const [head, ...rest] = columns
  if (!head || (rows.length === 0 && props.empty !== undefined)) return <>{props.empty}</>
  const decimals = columns.map(
    (column) => column.decimals && Math.max(...rows.map((row) => column.decimals?.(row) ?? 0)),
  )
  return (
    <table class={props.class ?? 'data-table'}>
      <caption class="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.label} scope="col" class={cellClass(column)} aria-sort={column.sorted}>
              {column.head ?? column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} data-row={keyOf(row)} class={isDim?.(row) ? 'dim' : undefined}>
            <th scope="row" class={cellClass(head)}>
              <Cell column={head} row={row} href={hrefOf?.(row)} />
            </th>
            {rest.map((column, at) => (
              <td key={column.label} data-label={column.label} class={cellClass(column)}>
                <Cell column={column} row={row} decimals={decimals[at + 1]} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function cellClass<Row>({ isNumber, isWhole }: Column<Row>): string | undefined {
  return isNumber ? 'number' : isWhole ? 'whole' : undefined
}

function Cell<Row>({
  column,
  row,
  href,
  decimals,
}: {
  readonly column: Column<Row>
  readonly row: Row
  readonly href?: string | undefined
  readonly decimals?: number | undefined
}) {
  const value = column.show(row, decimals)
  const note = column.note?.(row)
  return (
    <>
      {href === undefined ? (
        value
      ) : (
        <a class="row-link" href={href}>
          {value}
        </a>
      )}
      {note && <small class="note">{note}</small>}
    </>
  )
}
