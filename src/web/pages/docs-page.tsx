/** @jsxImportSource preact */
// A page of the documentation, or the results of a search in it, with the list of all pages and of its own headings beside it.

import { useEffect, useRef, useState } from 'preact/hooks'
import { countOf } from '../catalog/format.ts'
import type { DocsContent, DocsData, DocsSearch } from '../page-data.ts'
import { handleCommonKey, isTyping, useShortcuts } from './components.tsx'

export function DocsPage({ html, search, path, groups, contents, isHome = false }: DocsData) {
  useShortcuts((event) => event.key === '/' && !isTyping(event) && handleCommonKey('/'))
  return (
    <div class={contents.length > 0 ? 'docs with-contents' : 'docs'}>
      <nav aria-label="Documentation" class="docs-menu">
        <details>
          <summary>All pages</summary>
          <Links path={path} groups={groups} />
        </details>
        <div class="docs-menu-open">
          <Links path={path} groups={groups} />
        </div>
      </nav>
      <div class="docs-page">
        <SearchForm query={search?.query} />
        {contents.length > 0 && <Contents contents={contents} />}
        {search ? (
          <Results {...search} />
        ) : (
          <article class={isHome ? 'prose docs-home' : 'prose'} dangerouslySetInnerHTML={{ __html: html }} />
        )}
      </div>
    </div>
  )
}

/** How far below the top of the window a heading is still the current one. */
const currentTop = 120

/** Of the last heading that was scrolled past; empty = none yet. */
function useCurrentHeading(contents: readonly DocsContent[]): string {
  const [current, setCurrent] = useState('')
  useEffect(() => {
    const find = () => {
      const passed = contents.filter(({ id }) => {
        const top = document.getElementById(id)?.getBoundingClientRect().top
        return top !== undefined && top < currentTop
      })
      setCurrent(passed.at(-1)?.id ?? '')
    }
    find()
    addEventListener('scroll', find, { passive: true })
    return () => removeEventListener('scroll', find)
  }, [contents])
  return current
}

/** Beside the text; on a narrow screen folded above it. */
function Contents({ contents }: Pick<DocsData, 'contents'>) {
  const current = useCurrentHeading(contents)
  const list = (
    <ul class="plain">
      {contents.map(({ id, label, isSub }) => (
        <li key={id} class={isSub ? 'sub' : undefined}>
          <a href={`#${id}`} aria-current={id === current ? 'location' : undefined}>
            {label}
          </a>
        </li>
      ))}
    </ul>
  )
  return (
    <nav aria-label="On this page" class="docs-contents">
      <details>
        <summary>On this page</summary>
        {list}
      </details>
      <div class="docs-contents-open">
        <h2>On this page</h2>
        {list}
      </div>
    </nav>
  )
}

/** `query`: of the results below, which are then a Tab away. */
function SearchForm({ query }: { readonly query: string | undefined }) {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (query !== undefined) field.current?.focus()
  }, [query])
  return (
    <search>
      <form action="/docs/search" class="docs-search">
        <input
          ref={field}
          type="search"
          name="q"
          aria-label="Search the documentation"
          placeholder="Search guides, reference and API"
          maxLength={100}
          data-search
          defaultValue={query}
        />
        <button type="submit" class="button quiet">
          Search
        </button>
      </form>
    </search>
  )
}

function Results({ query, found, results }: DocsSearch) {
  const shown = found > results.length ? `The best ${results.length} of ${found} results` : countOf(found, 'result')
  return (
    <article class="prose">
      <h1>Search</h1>
      {query === '' && <p>Enter words of a title, a heading, the text, or the path of an API operation.</p>}
      {query !== '' && (
        <p class="muted">
          {shown} for “{query}”.{found === 0 && ' Use fewer or shorter words.'}
        </p>
      )}
      <ol class="plain docs-results">
        {results.map(({ href, page, heading, excerpt }) => (
          <li key={href}>
            <a href={href}>{heading}</a>
            {heading !== page && <small class="muted"> · {page}</small>}
            <p>{excerpt.map((piece, at) => (at % 2 === 0 ? piece : <mark key={at}>{piece}</mark>))}</p>
          </li>
        ))}
      </ol>
    </article>
  )
}

function Links({ path, groups }: Pick<DocsData, 'path' | 'groups'>) {
  return (
    <>
      {groups.map(({ title, links }) => (
        <section key={title}>
          <h2>{title}</h2>
          <ul class="plain">
            {links.map(({ href, label }) => (
              <li key={href}>
                <a href={href} aria-current={href === path ? 'page' : undefined}>
                  {label}
                </a>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  )
}
