/** @jsxImportSource preact */
// Markdown of an answer as elements: paragraphs, headings, lists, quotes, tables, code and emphasis. A model's text is
// not trusted: nothing in it is used as HTML, the browser fetches nothing for it, and the address of a link or an image is
// shown as text, so that readers see where it leads. Unfinished constructs of a stream are shown as text.

import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { CodeBlock } from './components.tsx'

export function Markdown({ text }: { readonly text: string }) {
  return <div class="markdown">{useMemo(() => blocksOf(text.split(/\r?\n/), 0), [text])}</div>
}

/** How deep quotes and lists may nest: a hostile text must not exhaust the stack. */
const depthMax = 8

const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/
const heading = /^ {0,3}(#{1,6}) +(.*)$/
const quote = /^ {0,3}>/
const item = /^( *)([-*+]|\d{1,9}[.)])(?: +(.*))?$/
const tableRule = /^\|?[ :]*-[-: ]*(?:\|[-: ]+)*\|?$/

/** Reads one block of the lines from a place on; its elements and the place after it. */
type ReadBlock = (
  lines: readonly string[],
  from: number,
  depth: number,
) => readonly [block: ComponentChildren, end: number] | undefined

const readers: readonly ReadBlock[] = [readFence, readHeading, readRule, readQuote, readList, readTable]

function blocksOf(lines: readonly string[], depth: number): ComponentChildren[] {
  const blocks: ComponentChildren[] = []
  let from = 0
  while (from < lines.length) {
    if (lines[from]?.trim() === '') {
      from++
      continue
    }
    const [block, end] = readBlock(lines, from, depth) ?? readParagraph(lines, from)
    blocks.push(block)
    from = end
  }
  return blocks
}

/** Whether a block other than a paragraph begins here. Of numbered lists only those from 1 on, as a year may begin a line. */
function isBlockStart(lines: readonly string[], at: number): boolean {
  const line = lines[at] ?? ''
  const marker = item.exec(line)?.[2]
  return (
    [fence, heading, quote].some((start) => start.test(line)) ||
    isRule(line) ||
    isTable(lines, at) ||
    (marker !== undefined && !/^(?!1\b)\d/.test(marker))
  )
}

function readBlock(lines: readonly string[], from: number, depth: number): ReturnType<ReadBlock> {
  if (depth >= depthMax) return undefined
  for (const read of readers) {
    const found = read(lines, from, depth)
    if (found) return found
  }
  return undefined
}

function readFence(lines: readonly string[], from: number): ReturnType<ReadBlock> {
  const mark = fence.exec(lines[from] ?? '')?.[1]
  if (mark === undefined) return undefined
  let end = from + 1
  while (end < lines.length && !isFenceEnd(lines[end] ?? '', mark)) end++
  const code = lines.slice(from + 1, end).join('\n')
  return [<CodeBlock key={from} code={code} what="code" />, end + 1]
}

function isFenceEnd(line: string, mark: string): boolean {
  const text = line.trim()
  return text.length >= mark.length && text === (mark[0] ?? '').repeat(text.length)
}

/** Below the headings of the page. */
const headings = ['h3', 'h4', 'h5', 'h6', 'h6', 'h6'] as const

function readHeading(lines: readonly string[], from: number): ReturnType<ReadBlock> {
  const found = heading.exec(lines[from] ?? '')
  if (!found) return undefined
  const Heading = headings[(found[1]?.length ?? 1) - 1] ?? 'h6'
  return [<Heading key={from}>{inline((found[2] ?? '').replace(/ #+$/, ''), 0)}</Heading>, from + 1]
}

function readRule(lines: readonly string[], from: number): ReturnType<ReadBlock> {
  return isRule(lines[from] ?? '') ? [<hr key={from} />, from + 1] : undefined
}

function isRule(line: string): boolean {
  return /^(?:-{3,}|\*{3,}|_{3,})$/.test(line.replaceAll(' ', ''))
}

function readQuote(lines: readonly string[], from: number, depth: number): ReturnType<ReadBlock> {
  let end = from
  while (quote.test(lines[end] ?? '')) end++
  if (end === from) return undefined
  const inner = lines.slice(from, end).map((line) => line.replace(/^ {0,3}> ?/, ''))
  return [<blockquote key={from}>{blocksOf(inner, depth + 1)}</blockquote>, end]
}

function readList(lines: readonly string[], from: number, depth: number): ReturnType<ReadBlock> {
  const first = item.exec(lines[from] ?? '')
  if (!first) return undefined
  const indent = first[1]?.length ?? 0
  const isOrdered = /^\d/.test(first[2] ?? '')
  const items: string[][] = []
  let end = from
  for (; end < lines.length; end++) {
    const line = lines[end] ?? ''
    const found = item.exec(line)
    const lead = line.length - line.trimStart().length
    const last = items.at(-1)
    if (found && lead < indent + 2 && /^\d/.test(found[2] ?? '') === isOrdered) items.push([found[3] ?? ''])
    else if (line.trim() === '' && last && continuesList(lines[end + 1] ?? '', indent)) last.push('')
    else if (last && lead > indent) last.push(line.slice(Math.min(lead, indent + (first[2]?.length ?? 1) + 1)))
    else break
  }
  const rows = items.map((each, at) => <li key={at}>{itemContent(each, depth)}</li>)
  const start = Number.parseInt(first[2] ?? '', 10)
  return [
    isOrdered ? (
      <ol key={from} start={start}>
        {rows}
      </ol>
    ) : (
      <ul key={from}>{rows}</ul>
    ),
    end,
  ]
}

function continuesList(line: string, indent: number): boolean {
  return item.test(line) || (line.trim() !== '' && line.length - line.trimStart().length > indent)
}

/** One line needs no paragraph. */
function itemContent(lines: readonly string[], depth: number): ComponentChildren {
  return lines.length === 1 ? inline(lines[0] ?? '', 0) : blocksOf(lines, depth + 1)
}

function readTable(lines: readonly string[], from: number): ReturnType<ReadBlock> {
  if (!isTable(lines, from)) return undefined
  let end = from + 2
  while ((lines[end] ?? '').includes('|')) end++
  const names = cellsOf(lines[from] ?? '')
  return [
    <div key={from} class="table-box">
      <table class="compact-table">
        <thead>
          <tr>
            {names.map((name, at) => (
              <th key={at} scope="col">
                {inline(name, 0)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.slice(from + 2, end).map((line, row) => (
            <tr key={row}>
              {cellsOf(line)
                .slice(0, names.length)
                .map((cell, at) => (
                  <td key={at}>{inline(cell, 0)}</td>
                ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>,
    end,
  ]
}

function isTable(lines: readonly string[], at: number): boolean {
  return lines[at]?.includes('|') === true && tableRule.test((lines[at + 1] ?? '').trim())
}

function cellsOf(line: string): readonly string[] {
  const text = line.trim()
  const inner = text.slice(text.startsWith('|') ? 1 : 0, text.endsWith('|') ? -1 : undefined)
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

function readParagraph(lines: readonly string[], from: number): readonly [block: ComponentChildren, end: number] {
  let end = from + 1
  while (end < lines.length && lines[end]?.trim() !== '' && !isBlockStart(lines, end)) end++
  return [<p key={from}>{inline(lines.slice(from, end).join('\n'), 0)}</p>, end]
}

const emphases = [
  [
    '***',
    (inner: ComponentChildren) => (
      <strong>
        <em>{inner}</em>
      </strong>
    ),
  ],
  ['**', (inner: ComponentChildren) => <strong>{inner}</strong>],
  ['__', (inner: ComponentChildren) => <strong>{inner}</strong>],
  ['~~', (inner: ComponentChildren) => <del>{inner}</del>],
  ['*', (inner: ComponentChildren) => <em>{inner}</em>],
  ['_', (inner: ComponentChildren) => <em>{inner}</em>],
] as const

const link = /!?\[([^[\]\n]{1,500})\]\(([^()\s]{1,2000})(?: +"[^"\n]{0,200}")?\)/y
const special = /[\\`*_~[!]/g

/** Each step reads at least one character, and a delimiter without an end is searched for once. */
function inline(text: string, depth: number): ComponentChildren[] {
  const nodes: ComponentChildren[] = []
  const unclosed = new Set<string>()
  let plain = ''
  let at = 0
  const add = (node: ComponentChildren, end: number) => {
    if (plain !== '') nodes.push(plain)
    plain = ''
    nodes.push(node)
    at = end
  }
  while (at < text.length) {
    special.lastIndex = at
    const next = special.exec(text)?.index ?? text.length
    plain += text.slice(at, next)
    at = next
    if (at === text.length) break
    const found = codeAt(text, at, unclosed) ?? linkAt(text, at) ?? emphasisAt(text, at, depth, unclosed)
    if (found) add(found.node, found.end)
    else {
      const isEscaped = text[at] === '\\' && /[\\`*_~[\]()#+\-.!|>]/.test(text[at + 1] ?? '')
      plain += isEscaped ? text[at + 1] : runAt(text, at)
      at += isEscaped ? 2 : runAt(text, at).length
    }
  }
  if (plain !== '') nodes.push(plain)
  return nodes
}

interface Found {
  readonly node: ComponentChildren
  readonly end: number
}

/** Backticks are one delimiter, however many; everything else is a character. */
function runAt(text: string, at: number): string {
  let end = at + 1
  if (text[at] === '`') while (text[end] === '`') end++
  return text.slice(at, end)
}

function codeAt(text: string, at: number, unclosed: Set<string>): Found | undefined {
  if (text[at] !== '`') return undefined
  const mark = runAt(text, at)
  if (unclosed.has(mark)) return undefined
  for (let end = text.indexOf(mark, at + mark.length); end !== -1; ) {
    const run = runAt(text, end)
    if (run.length === mark.length) {
      const code = text.slice(at + mark.length, end)
      const isPadded = code.startsWith(' ') && code.endsWith(' ') && code.trim() !== ''
      return { node: <code class="wrap">{isPadded ? code.slice(1, -1) : code}</code>, end: end + mark.length }
    }
    end = text.indexOf(mark, end + run.length)
  }
  unclosed.add(mark)
  return undefined
}

/** A link becomes its text and its address. It cannot be clicked, because its author is not trusted (docs/security.md, W5). */
function linkAt(text: string, at: number): Found | undefined {
  link.lastIndex = at
  const [whole, name = '', address = ''] = link.exec(text) ?? []
  if (whole === undefined) return undefined
  const label = name.replace(/[`*]/g, '')
  return { node: label === address ? address : `${label} (${address})`, end: at + whole.length }
}

function emphasisAt(text: string, at: number, depth: number, unclosed: Set<string>): Found | undefined {
  const found = emphases.find(([mark]) => text.startsWith(mark, at))
  if (!found || depth >= depthMax) return undefined
  const [mark, wrap] = found
  const isWord = (place: number) => /[\p{L}\p{N}]/u.test(text[place] ?? '')
  const isOpening = /\S/.test(text[at + mark.length] ?? '') && !(mark.startsWith('_') && isWord(at - 1))
  if (!isOpening || unclosed.has(mark)) return undefined
  for (let end = text.indexOf(mark, at + mark.length + 1); end !== -1; end = text.indexOf(mark, end + 1)) {
    const isClosing = /\S/.test(text[end - 1] ?? '') && !(mark.startsWith('_') && isWord(end + mark.length))
    // A single star does not end inside a double one.
    const isWhole = mark.length > 1 || (text[end + 1] !== mark && text[end - 1] !== mark)
    if (isClosing && isWhole) {
      return { node: wrap(inline(text.slice(at + mark.length, end), depth + 1)), end: end + mark.length }
    }
  }
  unclosed.add(mark)
  return undefined
}
