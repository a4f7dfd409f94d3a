/** @jsxImportSource preact */
// The frame of every page, rendered the same on the server and in the browser: masthead, content, footer. Also the page
// that only shows a message.

import type { ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import {
  type Frame,
  isConsoleKind,
  type NoticeData,
  type Page,
  type PageData,
  type PageKind,
  type Theme,
  themeCookie,
  themes,
} from '../page-data.ts'
import { Icon } from './icons.tsx'

/** The pages that a bundle contains; the catalog's script does not carry the console. */
export type PageComponents = {
  readonly [Kind in PageKind]?: ComponentType<PageData[Kind] & { readonly frame: Frame }>
}

export interface PageViewProps {
  readonly page: Page
  readonly frame: Frame
  readonly components: PageComponents
}

export function PageView({ page, frame, components }: PageViewProps) {
  // `Page` pairs every kind with its data; TypeScript cannot follow that the kind's component takes it.
  const Content = components[page.kind] as ComponentType<Page['data'] & { readonly frame: Frame }> | undefined
  // The console has its own frame.
  if (page.kind === 'console') return Content ? <Content {...page.data} frame={frame} /> : null
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Masthead kind={page.kind} frame={frame} />
      <main id="main" tabIndex={-1}>
        {Content && <Content {...page.data} frame={frame} />}
      </main>
      <footer class="footer between">
        <span>Tollgate {frame.version}</span>
        <span>Prices are in US dollars per million tokens, exactly as billed.</span>
      </footer>
    </>
  )
}

/** A message with links, for example when a page does not exist. */
export function NoticePage({ title, text, links }: NoticeData) {
  return (
    <section class="notice card stack">
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

function Masthead({ kind, frame }: { readonly kind: PageKind; readonly frame: Frame }) {
  const isConsole = isConsoleKind(kind)
  return (
    <header class="masthead">
      <div class="masthead-row row">
        <a class="brand" href="/" aria-label="Tollgate">
          <Logo />
          <span>Tollgate</span>
        </a>
        <nav aria-label="Pages">
          <a href="/" aria-current={kind === 'list' ? 'page' : undefined}>
            Models
          </a>
          <a href="/docs" aria-current={kind === 'docs' ? 'page' : undefined}>
            Docs
          </a>
          <a href="/console" aria-current={isConsole ? 'page' : undefined}>
            {frame.isSignedIn || isConsole ? 'Console' : 'Sign in'}
          </a>
        </nav>
        <ThemeSwitch theme={frame.theme} />
      </div>
      <div class="stripe" aria-hidden="true" />
    </header>
  )
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <path class="logo-road" d="M3 28h26" />
      <path class="logo-post" d="M8 28V13" />
      <path class="logo-arm" d="M8 15 27 6" />
      <path class="logo-stripes" d="M12.5 12.9l3.2-1.5M19.6 9.5l3.2-1.5" />
      <circle class="logo-light" cx="8" cy="11" r="3" />
    </svg>
  )
}

const yearSeconds = 31_536_000

/** Kept in a cookie, so that the server renders the next page in the same theme. */
export function setTheme(theme: Theme): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing on plain http, where gateways often are
  document.cookie = `${themeCookie}=${theme}; path=/; max-age=${yearSeconds}; samesite=lax`
  document.documentElement.dataset.theme = theme
}

function ThemeSwitch({ theme }: { readonly theme: Theme }) {
  const [chosen, choose] = useState(theme)
  const change = () => {
    const next = themes[(themes.indexOf(chosen) + 1) % themes.length] ?? 'system'
    setTheme(next)
    choose(next)
  }
  return (
    <button
      type="button"
      class="theme icon-button needs-script"
      aria-label={`Theme: ${chosen}. Change theme`}
      title={`Theme: ${chosen}`}
      onClick={change}
    >
      <Icon name={chosen} size={18} />
    </button>
  )
}
