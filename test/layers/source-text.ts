// Splits a TypeScript file into its code, its string literals and its imports, so that the rules read what the program
// does and not what its comments say. It is a tokenizer, not a parser: TypeScript 7 offers no parser to scripts, and
// Bun's own import scan leaves out imports of types.

export interface Literal {
  readonly text: string
  /** Where its opening quote stands. */
  readonly at: number
  /** False for a template with substitutions, of which only the text before the first is kept. */
  readonly whole: boolean
}

export interface Import {
  readonly specifier: string
  /** The names taken from the module, where they are listed in braces. */
  readonly names: readonly string[]
  readonly line: number
}

export interface SourceText {
  /** The file with comments, regular expressions and the insides of strings as blanks; every offset is the file's own. */
  readonly code: string
  readonly literals: readonly Literal[]
  /** Regular expressions, with their slashes and flags. */
  readonly patterns: readonly string[]
  readonly imports: readonly Import[]
  lineAt(offset: number): number
}

export function readSource(text: string): SourceText {
  const scanner = new Scanner(text)
  scanner.readCode(0, undefined)
  const code = scanner.code()
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length
  const { literals, patterns } = scanner
  return { code, literals, patterns, imports: findImports(code, literals, lineAt), lineAt }
}

/** After one of these a slash opens a regular expression; after a value it divides. */
const beforeRegex = /(?:^|[(,=:[!&|?{;+\-*%~^<>]|\b(?:return|typeof|case|in|of|throw|void|delete|await|yield|else|do))$/

class Scanner {
  readonly literals: Literal[] = []
  readonly patterns: string[] = []
  private readonly blanks: [start: number, end: number][] = []
  /** The last code that was not blank, long enough to hold a keyword. */
  private tail = ''

  constructor(private readonly text: string) {}

  code(): string {
    let code = ''
    let from = 0
    for (const [start, end] of this.blanks) {
      code += this.text.slice(from, start) + this.text.slice(start, end).replace(/[^\n]/g, ' ')
      from = end
    }
    return code + this.text.slice(from)
  }

  /** Reads from an offset to the end of the file, or to the brace that ends a substitution; returns where it stopped. */
  readCode(start: number, closing: '}' | undefined): number {
    let at = start
    let depth = 0
    while (at < this.text.length) {
      const char = this.text.charAt(at)
      if (closing !== undefined && char === closing && depth === 0) return at
      if (char === '{') depth += 1
      if (char === '}') depth -= 1
      at = this.readToken(at, char)
    }
    return at
  }

  private readToken(at: number, char: string): number {
    if (char === "'" || char === '"') return this.readString(at, char)
    if (char === '`') return this.readTemplate(at)
    if (char === '/') return this.readSlash(at)
    // Blanks end a word: `case` in `lower case` is one, in `lowercase` it is not.
    if (!/\s/.test(char)) this.tail = (this.tail + char).slice(-12)
    else if (/\w$/.test(this.tail) && /\w/.test(this.text.charAt(at + 1))) this.tail += ' '
    return at + 1
  }

  private readSlash(at: number): number {
    const { text } = this
    if (text.startsWith('//', at)) {
      const end = text.indexOf('\n', at)
      return this.blank(at, end < 0 ? text.length : end)
    }
    if (text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at + 2)
      return this.blank(at, end < 0 ? text.length : end + 2)
    }
    // `</` closes an element of a page.
    if (beforeRegex.test(this.tail) && text.charAt(at - 1) !== '<') {
      const body = /^\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/.exec(text.slice(at, at + 2000))
      if (body) {
        this.tail = '/0'
        this.patterns.push(body[0])
        return this.blank(at, at + body[0].length)
      }
    }
    this.tail = `${this.tail}/`.slice(-12)
    return at + 1
  }

  private readString(at: number, quote: string): number {
    let end = at + 1
    while (end < this.text.length && this.text[end] !== quote) {
      // A string ends on its line; what does not is an apostrophe in the text of a page.
      if (this.text[end] === '\n') return at + 1
      end += this.text[end] === '\\' ? 2 : 1
    }
    this.literals.push({ text: this.text.slice(at + 1, end), at, whole: true })
    this.tail = quote
    return this.blank(at + 1, end) + 1
  }

  private readTemplate(at: number): number {
    const { text } = this
    let from = at + 1
    let end = from
    let head: string | undefined
    while (end < text.length && text[end] !== '`') {
      if (text.startsWith('${', end)) {
        head ??= text.slice(from, end)
        this.blank(from, end)
        this.tail = '{'
        from = this.readCode(end + 2, '}') + 1
        end = from
        continue
      }
      end += text[end] === '\\' ? 2 : 1
    }
    this.literals.push({ text: head ?? text.slice(from, end), at, whole: head === undefined })
    this.tail = '`'
    return this.blank(from, end) + 1
  }

  private blank(start: number, end: number): number {
    this.blanks.push([start, end])
    return end
  }
}

/** `import … from`, `export … from`, `import(…)`, `require(…)`, and the files named by `new URL(…)`, such as workers. */
const beforeSpecifier = /(?:\b(?:from|import)\s*|\b(?:import|require)\s*\(\s*|\bnew\s+URL\s*\(\s*)$/

function findImports(code: string, literals: readonly Literal[], lineAt: (offset: number) => number): Import[] {
  const imports: Import[] = []
  for (const literal of literals) {
    const lead = beforeSpecifier.exec(code.slice(Math.max(0, literal.at - 40), literal.at))
    if (!lead || (lead[0].startsWith('new') && !literal.text.startsWith('.'))) continue
    const before = code.slice(Math.max(0, literal.at - 2000), literal.at)
    const list = /\b(?:import|export)\b[^{}]*\{([^{}]*)\}\s*from\s*$/.exec(before)?.[1] ?? ''
    const names = list.split(',').flatMap((item) => /^\s*(?:type\s+)?([\w$]+)/.exec(item)?.[1] ?? [])
    imports.push({ specifier: literal.text, names, line: lineAt(literal.at) })
  }
  return imports
}
