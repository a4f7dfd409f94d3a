/** @jsxImportSource preact */
// A page of words: something is not there, and where to go instead.

import type { NoticeData } from '../../page-data.ts'

export function NoticePage({ title, text, links }: NoticeData) {
  return (
    <section class="notice">
      <h1>{title}</h1>
      <p>{text}</p>
      <ul class="plain">
        {links.map(({ href, label }) => (
          <li key={href}>
            <a href={href}>{label}</a>
          </li>
        ))}
      </ul>
    </section>
  )
}
