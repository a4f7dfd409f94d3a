/** @jsxImportSource preact */
// A page of the documentation, with the list of all of them beside it.

import type { DocsData } from '../page-data.ts'

export function DocsPage({ html, path, groups }: DocsData) {
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
      <article class="prose" dangerouslySetInnerHTML={{ __html: html }} />
    </div>
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
