/** @jsxImportSource preact */
// The band on top of every page: the gate, the ways in, and the colours.

import { useState } from 'preact/hooks'
import { type Frame, type PageKind, type Theme, themeCookie, themes } from '../../page-data.ts'

export interface MastheadProps {
  readonly kind: PageKind
  readonly frame: Frame
}

export function Masthead({ kind, frame }: MastheadProps) {
  const isConsole = kind === 'console' || kind === 'sign-in'
  return (
    <header class="masthead">
      <div class="masthead-row">
        <a class="brand" href="/">
          <GateMark />
          <span>Tollgate</span>
        </a>
        <nav aria-label="Pages">
          <a href="/" aria-current={kind === 'list' ? 'page' : undefined}>
            Catalog
          </a>
          <a href="/console" aria-current={isConsole ? 'page' : undefined}>
            {frame.isSignedIn || isConsole ? 'Console' : 'Sign in'}
          </a>
        </nav>
        <ThemeSwitch theme={frame.theme} />
      </div>
      <div class="barrier" aria-hidden="true" />
    </header>
  )
}

/** A post, an arm, and the road under it. */
function GateMark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
      <path class="mark-road" d="M3 28h26" />
      <path class="mark-post" d="M8 28V13" />
      <path class="mark-arm" d="M8 15 27 6" />
      <path class="mark-stripes" d="M12.5 12.9l3.2-1.5M19.6 9.5l3.2-1.5" />
      <circle class="mark-lamp" cx="8" cy="11" r="3" />
    </svg>
  )
}

const yearSeconds = 31_536_000

const themeShapes: Readonly<Record<Theme, string>> = {
  // Half a disc, a sun, a moon.
  system: 'M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14',
  light:
    'M10 6.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7M10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M4 16l1.4-1.4M14.6 5.4 16 4',
  dark: 'M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7z',
}

/** Kept in a cookie, so that the server sends the next page in these colours. */
function ThemeSwitch({ theme }: { readonly theme: Theme }) {
  const [chosen, choose] = useState(theme)
  const change = () => {
    const next = themes[(themes.indexOf(chosen) + 1) % themes.length] ?? 'system'
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing on plain http, where gateways often are
    document.cookie = `${themeCookie}=${next}; path=/; max-age=${yearSeconds}; samesite=lax`
    document.documentElement.dataset.theme = next
    choose(next)
  }
  return (
    <button
      type="button"
      class="theme needs-script"
      aria-label={`Colours: ${chosen}. Change`}
      title={`Colours: ${chosen}`}
      onClick={change}
    >
      <svg class={chosen} viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
        <path d={themeShapes[chosen]} />
      </svg>
    </button>
  )
}
