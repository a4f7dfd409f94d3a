// Reads YAML (and JSON, which is a part of it) and remembers where everything stood, so that each fault can name its
// line. It does not know what the keys mean.

import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLError } from 'yaml'
import type { ConfigFault, ConfigPath } from './fault.ts'

export interface ConfigDocument {
  readonly value: unknown
  /** Where a value, or its key, starts; for something that is not there, where its container does. */
  offset(path: ConfigPath, at: 'value' | 'key'): number
  /** `tollgate.yaml:14:12` */
  place(offset: number): string
  line(path: ConfigPath): number
}

export function readDocument(
  fileName: string,
  text: string,
): ConfigDocument | { readonly faults: readonly ConfigFault[] } {
  const lines = new LineCounter()
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const place = (offset: number) => {
    const { line, column } = position(offset)
    return `${fileName}:${line}:${column}`
  }
  // Pretty errors would quote the line, and the line may hold a key.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  // A warning is a tag nobody knows; its value would silently be taken for text.
  const faults = [...document.errors, ...document.warnings].map((error) => ({
    where: place(error.pos[0]),
    field: '',
    message: syntaxMessage(error),
  }))
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return
      faults.push({ where: place(alias.range?.[0] ?? 0), field: '', message: 'this alias has no anchor before it' })
    },
  })
  if (faults.length > 0) return { faults }

  const value = plainValue(document)
  if ('fault' in value) return { faults: [{ where: place(0), field: '', message: value.fault }] }
  return {
    value: value.plain,
    offset: (path, at) => offsetOf(document, path, at),
    place,
    line: (path) => position(offsetOf(document, path, 'value')).line,
  }
}

function plainValue(document: Document): { readonly plain: unknown } | { readonly fault: string } {
  try {
    return { plain: document.toJS() }
  } catch {
    return { fault: 'its aliases cannot be resolved: they are too many, or one contains itself' }
  }
}

/** The parser's words without the piece of the file that some of them end in. */
function syntaxMessage(error: YAMLError): string {
  if (error.code === 'MULTIPLE_DOCS') return 'expected one document, got a second one after ---'
  if (error.code === 'DUPLICATE_KEY') return 'this key stands twice in the same mapping'
  if (error.code === 'BAD_DQ_ESCAPE') return 'invalid escape sequence in double quotes'
  const words = error.code === 'MISSING_CHAR' ? error.message : error.message.replace(/: .*$/s, '')
  return `not valid YAML: ${words.charAt(0).toLowerCase()}${words.slice(1)}`
}

function offsetOf(document: Document, path: ConfigPath, at: 'value' | 'key'): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  path.forEach((part, index) => {
    if (isAlias(node)) node = node.resolve(document)
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      const wantsKey = at === 'key' && index === path.length - 1
      next = wantsKey ? pair?.key : (pair?.value ?? pair?.key)
    } else if (isSeq(node) && typeof part === 'number') {
      next = node.items[part]
    }
    offset = startOf(next) ?? offset
    node = next
  })
  return offset
}

function startOf(node: unknown): number | undefined {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range?.[0] : undefined
}
