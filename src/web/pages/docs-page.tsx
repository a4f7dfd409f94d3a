/** @jsxImportSource preact */
// A page of the documentation, or the results of a search in it, with the list of all pages beside it.

import { useEffect, useRef } from 'preact/hooks'
import { countOf } from '../catalog/format.ts'
import type { DocsData, DocsSearch } from '../page-data.ts'
import { handleCommonKey, isTyping, useShortcuts } from './components.tsx'

export function DocsPage({ html, search, path, groups }: DocsData) {
  useShortcuts((event) => event.key === '/' && !isTyping(event) && handleCommonKey('/'))
  return (
    <div class="docs">
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
        {search ? <Results {...search} /> : <article class="prose" dangerouslySetInnerHTML={{ __html: html }} />}
      </div>
    </div>
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
            {heading !== page && <small class="muted"> {page}</small>}
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
