// Search in the documentation: passages, which are the parts of a page below its headings, ranked by where the words occur.
// The query comes from a visitor, so its length and the results are limited, and nothing here is HTML.

import type { DocsSearch } from './page-data.ts'

/** The text below a heading, as plain text. */
export interface Passage {
  readonly href: string
  /** Title of its page. */
  readonly page: string
  readonly heading: string
  readonly text: string
}

export const queryMax = 100
const wordsMax = 8
const resultsMax = 20
const excerptMax = 180
/** How much of the excerpt is before the match. */
const leadMax = 50

/** Splits a rendered page at its headings, which have ids. */
export function passagesOf(page: string, href: string, html: string): readonly Passage[] {
  return html.split(/(?=<h[1-4] id=")/).flatMap((part) => {
    const [head, level, id, heading] = /^<h([1-4]) id="([^"]*)">(.*?)<\/h\1>/s.exec(part) ?? []
    if (head === undefined) return []
    return {
      href: level === '1' ? href : `${href}#${id}`,
      page,
      heading: plainText(heading ?? ''),
      text: plainText(part.slice(head.length)),
    }
  })
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'" }

export function plainText(html: string): string {
  return html
    .replace(/<\/?(?:code|em|strong|a|wbr)\b[^<>]*>/g, '')
    .replace(/<[^<>]+>/g, ' ')
    .replace(/&(#?\w+);/g, (whole, name: string) => entities[name] ?? whole)
    .replace(/\s+/g, ' ')
    .trim()
}

/** Passages that have all words, the best first. */
export function searchDocs(passages: readonly Passage[], query: string): DocsSearch {
  const asked = query.slice(0, queryMax).trim()
  const words = [...new Set(asked.toLowerCase().split(/\s+/))].filter((word) => word !== '').slice(0, wordsMax)
  const found = passages
    .map((passage) => ({ passage, rank: rankOf(passage, words) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
  return {
    query: asked,
    found: found.length,
    results: found.slice(0, resultsMax).map(({ passage: { href, page, heading, text } }) => {
      // A page that was found by its title is shown by its beginning.
      return {
        href,
        page,
        heading,
        excerpt: isByTitle({ page, heading }, words) ? [startOf(text)] : excerptOf(text, words),
      }
    }),
  }
}

function startOf(text: string): string {
  return text.length <= excerptMax ? text : `${text.slice(0, text.lastIndexOf(' ', excerptMax))} …`
}

/** The beginning of a page whose title has all words, each at least as the start of one. */
function isByTitle({ page, heading }: Pick<Passage, 'page' | 'heading'>, words: readonly string[]): boolean {
  return heading === page && words.every((word) => matchOf(page, word) >= 2)
}

/** Above any sum of the other ranks. */
const titleRank = 1000

/**
 * 0 = a word is missing. Pages whose title has all words come first, each by its beginning. Then headings count more than
 * titles, and titles more than text.
 */
function rankOf({ page, heading, text }: Passage, words: readonly string[]): number {
  let rank = isByTitle({ page, heading }, words) ? titleRank : 0
  for (const word of words) {
    const best = 6 * matchOf(heading, word) + 3 * matchOf(page, word) + matchOf(text, word)
    if (best === 0) return 0
    rank += best
  }
  return rank
}

/** 3 = a whole word, 2 = the start of one, 1 = inside one, 0 = absent. */
function matchOf(text: string, word: string): 0 | 1 | 2 | 3 {
  const lower = text.toLowerCase()
  let best: 0 | 1 | 2 = 0
  for (let at = lower.indexOf(word); at !== -1; at = lower.indexOf(word, at + 1)) {
    const isStart = !/[\p{L}\p{N}]/u.test(lower[at - 1] ?? '')
    if (isStart && !/[\p{L}\p{N}]/u.test(lower[at + word.length] ?? '')) return 3
    best = isStart ? 2 : best || 1
  }
  return best
}

/** The text around the first match, in pieces of which every second one is a match. */
function excerptOf(text: string, words: readonly string[]): readonly string[] {
  const pattern = new RegExp(`(${words.map((word) => RegExp.escape(word)).join('|')})`, 'gi')
  const match = Math.max(0, text.search(pattern))
  const from = match <= leadMax ? 0 : text.lastIndexOf(' ', match - leadMax) + 1
  // At the end of a word, unless there is none.
  const end = Math.max(text.lastIndexOf(' ', from + excerptMax), match + 1)
  const shown = from + excerptMax < text.length ? `${text.slice(from, end)} …` : text.slice(from)
  return `${from > 0 ? '… ' : ''}${shown}`.split(pattern)
}
