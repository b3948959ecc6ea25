"""The grammar of quantities, beyond the published cases."""
# ruff: noqa: RUF001 (marks that look alike are what is tested)

from fractions import Fraction

import pytest

from evaluators import quantities


def read(text):
    """Write each quantity of a text as (quote, normalized), None where it is ambiguous."""
    return [
        (quantity.quote, quantity.value and quantities.normalized(quantity.value))
        for quantity in quantities.read(text)
    ]


def test_a_number_begins_with_a_digit_of_any_script_and_with_nothing_else():
    begins = [chr(code) for code in range(0x20000) if read(f"{chr(code)} mg")]

    assert begins == [
        chr(code) for code in range(0x20000) if chr(code).isdecimal() or chr(code) in "¼½¾⅓⅔⅛⅜⅝⅞"
    ]


UNITS = [
    (dimension, Fraction(factor), spelling)
    for dimension, factor, spellings in [
        ("length", "1/1000", "mm millimeter millimeters millimetre millimetres"),
        ("length", "1/100", "cm centimeter centimeters centimetre centimetres"),
        ("length", "1", "m meter meters metre metres"),
        ("length", "1000", "km kilometer kilometers kilometre kilometres"),
        ("mass", "1/1000000", "mcg \u00b5g \u03bcg microgram micrograms"),
        ("mass", "1/1000", "mg milligram milligrams"),
        ("mass", "1", "g gram grams"),
        ("mass", "1000", "kg kilogram kilograms"),
        ("volume", "1/1000", "ml milliliter milliliters millilitre millilitres"),
        ("volume", "1", "l liter liters litre litres"),
        ("time", "1", "s sec secs second seconds"),
        ("time", "60", "min mins minute minutes"),
        ("time", "3600", "h hr hrs hour hours"),
        ("time", "86400", "day days"),
        ("time", "604800", "week weeks"),
        ("ratio", "1/100", "% percent"),
        *((name, "1", f"{name} {name}s") for name in ("drop", "part", "cup", "tsp", "tbsp")),
        *((name, "1", f"{name} {name}s") for name in ("gallon", "month", "year")),
    ]
    for spelling in spellings.split()
]


@pytest.mark.parametrize(("dimension", "factor", "spelling"), UNITS)
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_every_spelling_of_a_unit_converts_exactly(dimension, factor, spelling, case):
    text = f"7 {case(spelling)}"

    assert read(text) == [(text, f"{dimension}:eq:{7 * factor}")]


@pytest.mark.parametrize(
    ("text", "kelvin"),
    [
        ("0 °C", "5463/20"),
        ("0°c", "5463/20"),
        ("0 ° C", "5463/20"),
        ("0 C", "5463/20"),
        ("0 celsius", "5463/20"),
        ("0 degrees\tCelsius", "5463/20"),
        ("32 °F", "5463/20"),
        ("32 f", "5463/20"),
        ("32 Fahrenheit", "5463/20"),
        ("32 degrees fahrenheit", "5463/20"),
        ("273.15 K", "5463/20"),
        ("273.15 Kelvin", "5463/20"),
        ("-273.15 °C", "0"),
        ("-459.67 °F", "0"),
    ],
)
def test_temperatures_convert_through_kelvin(text, kelvin):
    assert read(text) == [(text, f"temperature:eq:{kelvin}")]


@pytest.mark.parametrize(
    "text",
    [
        *("5 ms", "5 ng", "5 nm", "5 dL", "5 cl", "5 t", "5 lb", "5 oz", "5 ft", "5 in", "5 mile"),
        *("5 pint", "5 teaspoon", "5 tablespoon", "5 cc", "5 degrees C", "5 \u2103", "5 kelvins"),
        *("5 per cent", "5 mgs", "5 kgs", "5", "five mg", "5-minute", "5 m2", "x5 mg", "v1.2 m"),
        *("1.2.3 mg", "1.000.000 mg", "5. mg", "_5 mg_", "5x3 m", "5&nbsp;mg", "5\u200bmg"),
        *("5\n\nmg", "5\r\n\r\nmg", "5\u2029\nmg", "..5 mg", "5 mg_", "(5) mg", "5 E3 mg"),
    ],
)
def test_what_is_outside_the_grammar_is_no_quantity(text):
    assert read(text) == []


@pytest.mark.parametrize(
    "text", ["5\nmg", "5\r\nmg", "5\u2028mg", "5\tmg", "5 \u00a0mg", "5 \n mg"]
)
def test_a_line_may_be_wrapped_before_the_unit(text):
    assert read(text) == [(text, "mass:eq:1/200")]


@pytest.mark.parametrize(
    "text",
    [
        # P1: unsupported notation
        *("12 500 mg", "12\u00a0500 mg", "12\u202f500 mg", "12'500 mg", "12\u2019500 mg"),
        *("1.5×10^3 mg", "1.5 × 10³ mg", "1.5x10^3 mg", "1.5*10**3 mg", "1.5·10⁻³ mg", "10^3 mg"),
        *("10±5 mg", "10 ± 5 mg", "10 mg ± 5 mg", "10 mg ± 2", "10 +/- 5 mg", "10:05 min"),
        *("COVID-19 days", "a-5 mg", "x^2 m", "1.000,5 mg", "1e+3 mg", "٥٫٥ mg", "1·5 mg"),
        # P2: compound units
        *("5 mg/m²", "5 µg/m³", "5 m/s²", "5 mg/kg²", "5 mg per m²", "5 mg per 100 mL"),
        *("5 mg/24 h", "5 mg·kg⁻¹", "5 mg kg⁻¹", "5 m s-1", "5 s⁻¹", "5 mg/(kg·day)"),
        *("250 mg/5 mL", "5 m³", "5 cm^2", "5 mg per\nday", "10 mg/20 mg"),
        # P3, P4: bounds that are not in the vocabulary, or reversed
        *("greater than 5 mg", "fewer than 5 mg", "minimum of 5 mg", "max 5 mg", "max. 5 mg"),
        *("not exceeding 5 mg", "less than or equal to 5 mg", "≦5 mg", "5 mg or fewer"),
        *("atleast 5 mg", "upto 5 mg", "not exceed 5 mg"),
        *("not over 5 mg", "never more than 5 mg", "isn't more than 5 mg", "at or above 5 mg"),
        *("-> 5 mg", "=> 5 mg", ">> 5 mg", "5 mg or longer", "5 mg maximum", "5 mg at most"),
        *("between 5 mg", "up to 5–10 mg", "as much as 5 mg", "5 years+", "5 mg and above"),
        # P5: signs
        *("–5 °C", "−10 to –5 °C", "--5 °C", "\u20115 °C"),
        # P6: fractions
        *("1½ cups", "1 ½ cups", "½ cup", "1 1/2 cups", "1-1/2 cups", "1\u20442 cup", "10³ mg"),
        # P7: ranges that are none
        *("5 and 10 mg", "10–5 mg", "5 to 10 to 20 mg", "5 mg to 3 days", "5\u201110 mg"),
        *("5~10 mg", "5 through 10 mg", "5…10 mg", "5+10 mg", "2024-05-06 days", "5 / 10 mg"),
        # D1: hedges
        *("about 5 mg", "at least about 5 mg", "about at least 5 mg", "~5 mg", "≈ 5 mg"),
        *("between about 5 and 10 mg", "Roughly\n5 mg", "NEARLY 5 mg"),
    ],
)
def test_what_cannot_be_reduced_stays_whole_and_is_ambiguous(text):
    assert read(f"Take {text}") == [(text, None)]
    assert read(f"{text}. Then rest.") == [(text, None)]


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        *((phrase, "ge") for phrase in ("at least", "no less than", "not less than", "minimum")),
        *((phrase, "le") for phrase in ("at most", "no more than", "not more than", "maximum")),
        *(("up to", "le"), (">=", "ge"), ("≥", "ge"), ("<=", "le"), ("≤", "le")),
        *((phrase, "gt") for phrase in ("more than", "over", "above", ">")),
        *((phrase, "lt") for phrase in ("less than", "under", "below", "<")),
    ],
)
def test_a_bound_keeps_its_direction_in_any_case_and_spacing(text, operator):
    wide = "  ".join(text.split())

    for phrase in (text, text.upper(), text.title(), wide, text.replace(" ", "\n")):
        assert read(f"{phrase} 5 mg") == [(f"{phrase} 5 mg", f"mass:{operator}:1/200")]


@pytest.mark.parametrize(
    ("text", "quote", "normalized"),
    [
        ("The dose<5 mg is fine", "<5 mg", "mass:lt:1/200"),
        ("x≤5 mg", "≤5 mg", "mass:le:1/200"),
        ("<b>5 mg</b>", "5 mg", "mass:eq:1/200"),
        ('<td class="a">5 mg</td>', "5 mg", "mass:eq:1/200"),
        ("turnover 5 mg", "5 mg", "mass:eq:1/200"),
        ("rather than 5 mg", "5 mg", "mass:eq:1/200"),
        ("at least, 5 mg", "5 mg", "mass:eq:1/200"),
        ("at least\n\n5 mg", "5 mg", "mass:eq:1/200"),
        ("~~5 mg~~", "~5 mg", None),
        ("5 mg at least 3 times", "5 mg", "mass:eq:1/200"),
        ("5 mg to 10", "5 mg", "mass:eq:1/200"),
        ("5 mg – 3 times", "5 mg", "mass:eq:1/200"),
        ("Day 1\n- 500 mg", "500 mg", "mass:eq:1/2"),
        ("5 to\n10 mg", "5 to\n10 mg", "mass:range:1/200:1/100"),
        ("5 mg/kg/day", "5 mg/kg", None),
        ("3 tablets per 24 hours", "24 hours", "time:eq:86400"),
        ("2 × 5 mg", "5 mg", "mass:eq:1/200"),
        ("5 mg phase-2 drug", "5 mg", "mass:eq:1/200"),
        ("vitamin B12 500 mg", "500 mg", "mass:eq:1/2"),
    ],
)
def test_a_quantity_is_cut_out_of_its_sentence(text, quote, normalized):
    assert read(text) == [(quote, normalized)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("5 mg and 10 mg", [("5 mg", "mass:eq:1/200"), ("10 mg", "mass:eq:1/100")]),
        ("5 mg + 10 mg", [("5 mg", "mass:eq:1/200"), ("10 mg", "mass:eq:1/100")]),
        ("- 5 mg\n- 10 mg", [("5 mg", "mass:eq:1/200"), ("10 mg", "mass:eq:1/100")]),
        ("- 5 mg\r\n- 10 mg", [("5 mg", "mass:eq:1/200"), ("10 mg", "mass:eq:1/100")]),
        ("5 mg - 3 days", [("5 mg", "mass:eq:1/200"), ("3 days", "time:eq:259200")]),
        ("5 mg-3 days", [("5 mg", "mass:eq:1/200"), ("3 days", "time:eq:259200")]),
        ("5 mg -3 °C", [("5 mg", "mass:eq:1/200"), ("-3 °C", "temperature:eq:5403/20")]),
        ("5 mg and -3 °C", [("5 mg", "mass:eq:1/200"), ("-3 °C", "temperature:eq:5403/20")]),
        ("5 mg and 1–2 g", [("5 mg", "mass:eq:1/200"), ("1–2 g", "mass:range:1:2")]),
        ("5–10 mg – 3 days", [("5–10 mg", "mass:range:1/200:1/100"), ("3 days", "time:eq:259200")]),
        (
            "up to 5 mg over 2 days",
            [("up to 5 mg", "mass:le:1/200"), ("over 2 days", "time:gt:172800")],
        ),
        ("10 min 5 mg", [("10 min", "time:eq:600"), ("5 mg", "mass:eq:1/200")]),
        ("5 mg or more than 6 mg", [("5 mg or more", None), ("6 mg", "mass:eq:3/500")]),
    ],
)
def test_several_full_quantities_stay_several(text, found):
    assert read(text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("5–10 mg", "5-10 mg", "5—10 mg", "5 to 10 mg", "5 mg – 10 mg", "5 mg to 10 mg"),
        *("between 5 and 10 mg", "between 5 mg and 10 mg", "between 5–10 mg", "between 5 to 10 mg"),
        *("0.005–0.01 g", "5000 mcg to 10 mg", "+5 to +10 mg"),
    ],
)
def test_a_range_compares_by_both_ends(text):
    assert read(text) == [(text, "mass:range:1/200:1/100")]


def test_signs_of_both_ends_count():
    assert read("-5 to -1 °C") == [("-5 to -1 °C", "temperature:range:5363/20:5443/20")]
    assert read("-5--1 °C") == [("-5--1 °C", "temperature:range:5363/20:5443/20")]


def test_equal_ends_are_still_a_range():
    assert read("5–5 mg") == [("5–5 mg", "mass:range:1/200:1/200")]


@pytest.mark.parametrize("digits", [4_301, 5_000, 20_000])
def test_a_number_of_any_length_is_exact(digits):
    number = "9" * digits

    (metres,) = quantities.read(f"{number} m")
    (kilometres,) = quantities.read(f"{number[:-3]}.999 km")

    assert metres.value == kilometres.value
    assert metres.value != quantities.read(f"{number[:-1]}8 m")[0].value


def test_a_number_too_long_to_show_has_no_normal_form():
    shown, hidden = "9" * 4_000, "9" * 5_000

    assert read(f"{shown} mg") == [(f"{shown} mg", f"mass:eq:{shown}/1000")]
    assert read(f"{hidden} mg") == [(f"{hidden} mg", None)]
